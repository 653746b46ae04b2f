{{/* A value as the text of an environment variable. Helm reads numbers as floating point: 37748736 would become 3.7748736e+07. */}}
{{- define "agent-email.text" -}}
{{- if not (kindIs "float64" .) -}}
{{ toString . }}
{{- else if eq . (floor .) -}}
{{ printf "%.0f" . }}
{{- else -}}
{{ printf "%f" . }}
{{- end -}}
{{- end }}

{{/* Variables from keys of a Secret. Takes a dict of secret, names (variable → key) and optional. */}}
{{- define "agent-email.fromSecret" -}}
{{- range $name, $key := .names }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: { name: {{ $.secret }}, key: {{ $key }}{{ if $.optional }}, optional: true{{ end }} }
{{- end }}
{{- end }}

{{/* Secrets that every process needs to read its settings, also the job of the migrations. */}}
{{- define "agent-email.commonSecrets" -}}
{{- $optional := dict "STRIPE_SECRET_KEY" "STRIPE_SECRET_KEY" "STRIPE_WEBHOOK_SECRET" "STRIPE_WEBHOOK_SECRET" }}
{{- $required := dict "ENCRYPTION_KEY" "ENCRYPTION_KEY" "SIGNING_KEY" "SIGNING_KEY" }}
{{- include "agent-email.fromSecret" (dict "secret" .Values.existingSecret "names" $required) }}
{{- include "agent-email.fromSecret" (dict "secret" .Values.existingSecret "names" $optional "optional" true) }}
{{- end }}

{{/* `settings`, with those of the process, and what the chart itself sets. Takes a dict of root, component, own and fixed. */}}
{{- define "agent-email.settings" -}}
{{- $settings := dict }}
{{- range $name, $value := .root.Values.settings }}{{ $_ := set $settings $name $value }}{{ end }}
{{- range $name, $value := .own }}{{ $_ := set $settings $name $value }}{{ end }}
{{- range $name, $value := .fixed }}{{ $_ := set $settings $name $value }}{{ end }}
{{- range $name, $value := $settings }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ include "agent-email.text" $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The environment of a process. Takes a dict of root, component and process. */}}
{{- define "agent-email.environment" -}}
{{- $values := .root.Values }}
{{- $fixed := dict "NODE_ENV" "production" }}
{{- with .process.nodeOptions }}{{ $_ := set $fixed "NODE_OPTIONS" . }}{{ end }}
{{- $database := dict "DATABASE_URL" "WORKER_DATABASE_URL" }}
{{- $optional := list "S3_ACCESS_KEY_ID" "S3_SECRET_ACCESS_KEY" "TEMPORAL_API_KEY" "SES_ACCESS_KEY_ID" "SES_SECRET_ACCESS_KEY" "METRICS_TOKEN" "OTEL_EXPORTER_OTLP_HEADERS" }}
{{- if eq .component "api" }}
{{- $database = dict "DATABASE_URL" "API_DATABASE_URL" }}
{{- $api := index $values.processes "api" }}
{{- /* Providers deliver mail for any tenant, which needs the workers' login. */}}
{{- if or $api.rawProvider $values.settings.SES_TOPIC_ARNS $values.settings.BILLING_ENABLED }}
{{- $_ := set $database "WORKER_DATABASE_URL" "WORKER_DATABASE_URL" }}
{{- end }}
{{- if $api.rawProvider }}{{ $_ := set $database "PROVIDER_RAW_SECRET" "PROVIDER_RAW_SECRET" }}{{ end }}
{{- $optional = concat $optional (list "SIGNALS_DATABASE_URL" "OAUTH_GOOGLE_CLIENT_SECRET" "OAUTH_GITHUB_CLIENT_SECRET" "OAUTH_OIDC_PROVIDERS") }}
{{- $_ := set $fixed "API_HOST" "0.0.0.0" }}
{{- $_ := set $fixed "API_PORT" .process.ports.http }}
{{- /* Shown to users of email clients. */}}
{{- $shown := (index $values.processes "submission-smtp").service.ports }}
{{- $_ := set $fixed "SUBMISSION_SMTP_PORT" $shown.submission }}
{{- $_ := set $fixed "SUBMISSION_SMTP_TLS_PORT" $shown.submissions }}
{{- else }}
{{- $_ := set $fixed "WORKER_HEALTH_HOST" "0.0.0.0" }}
{{- $_ := set $fixed "WORKER_HEALTH_PORT" .process.ports.health }}
{{- $_ := set $fixed "TEMPORAL_METRICS_ADDRESS" "127.0.0.1:9464" }}
{{- end }}
{{- if eq .component "worker-outbound" }}
{{- $optional = concat $optional (list "SMTP_RELAY_USER" "SMTP_RELAY_PASSWORD") }}
{{- if $values.dkim.existingSecret }}{{ $_ := set $fixed "DKIM_SHARED_PRIVATE_KEY_FILE" "/dkim/shared.pem" }}{{ end }}
{{- if $values.relayCa.existingSecret }}{{ $_ := set $fixed "SMTP_RELAY_TLS_CA_FILE" "/relay-ca/ca.crt" }}{{ end }}
{{- end }}
{{- if eq .component "inbound-smtp" }}
{{- $_ := set $fixed "INBOUND_SMTP_HOST" "0.0.0.0" }}
{{- $_ := set $fixed "INBOUND_SMTP_PORT" .process.ports.smtp }}
{{- if $values.tls.inboundSmtpSecret }}
{{- $_ := set $fixed "INBOUND_SMTP_TLS_KEY_FILE" "/tls/tls.key" }}
{{- $_ := set $fixed "INBOUND_SMTP_TLS_CERT_FILE" "/tls/tls.crt" }}
{{- end }}
{{- end }}
{{- if eq .component "submission-smtp" }}
{{- $_ := set $fixed "SUBMISSION_SMTP_HOST" "0.0.0.0" }}
{{- $_ := set $fixed "SUBMISSION_SMTP_PORT" .process.ports.submission }}
{{- $_ := set $fixed "SUBMISSION_SMTP_TLS_PORT" .process.ports.submissions }}
{{- $_ := set $fixed "SUBMISSION_SMTP_TLS_KEY_FILE" "/tls/tls.key" }}
{{- $_ := set $fixed "SUBMISSION_SMTP_TLS_CERT_FILE" "/tls/tls.crt" }}
{{- end }}
{{- $optionalNames := dict }}
{{- range $optional }}{{ $_ := set $optionalNames . . }}{{ end }}
{{- include "agent-email.settings" (dict "root" .root "own" (index $values.processes .component).settings "fixed" $fixed) }}
{{- include "agent-email.fromSecret" (dict "secret" $values.existingSecret "names" $database) }}
{{- include "agent-email.commonSecrets" .root }}
{{- include "agent-email.fromSecret" (dict "secret" $values.existingSecret "names" $optionalNames "optional" true) }}
{{- end }}

{{/* Secrets that a process reads as files, as a JSON array: volume, secret, and a single key with the name of its file. */}}
{{- define "agent-email.files" -}}
{{- $values := .root.Values }}
{{- $files := list }}
{{- if and (eq .component "inbound-smtp") $values.tls.inboundSmtpSecret }}
{{- $files = append $files (dict "volume" "tls" "secret" $values.tls.inboundSmtpSecret) }}
{{- end }}
{{- if eq .component "submission-smtp" }}
{{- $files = append $files (dict "volume" "tls" "secret" $values.tls.submissionSmtpSecret) }}
{{- end }}
{{- if and (eq .component "worker-outbound") $values.dkim.existingSecret }}
{{- $files = append $files (dict "volume" "dkim" "secret" $values.dkim.existingSecret "key" $values.dkim.key "file" "shared.pem") }}
{{- end }}
{{- if and (eq .component "worker-outbound") $values.relayCa.existingSecret }}
{{- $files = append $files (dict "volume" "relay-ca" "secret" $values.relayCa.existingSecret "key" $values.relayCa.key "file" "ca.crt") }}
{{- end }}
{{- toJson $files }}
{{- end }}
