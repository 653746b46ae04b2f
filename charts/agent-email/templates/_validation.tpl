{{/* Every mistake in the values that the schema cannot express, in one message. */}}
{{- define "agent-email.validate" -}}
{{- $values := .Values }}
{{- $settings := $values.settings }}
{{- $problems := list }}
{{- if not $values.image.repository }}
{{- $problems = append $problems "image.repository is required: build the image from the Dockerfile and push it to a registry of yours." }}
{{- end }}
{{- if not $values.existingSecret }}
{{- $problems = append $problems "existingSecret is required: the name of a Secret with API_DATABASE_URL, WORKER_DATABASE_URL, ENCRYPTION_KEY and SIGNING_KEY (docs/kubernetes.md)." }}
{{- end }}
{{- range $name, $meaning := dict
  "MAIL_DOMAIN" "the shared domain of inbox addresses"
  "PUBLIC_URL" "the URL at which browsers and clients reach the service"
  "TEMPORAL_ADDRESS" "host:port of the Temporal frontend" }}
{{- if not (index $settings $name) }}
{{- $problems = append $problems (printf "settings.%s is required: %s." $name $meaning) }}
{{- end }}
{{- end }}
{{- if and (eq ($settings.MAIL_TRANSPORT | default "smtp") "smtp") (not $settings.SMTP_RELAY_HOST) }}
{{- $problems = append $problems "settings.SMTP_RELAY_HOST is required: the relay that sends mail, unless settings.MAIL_TRANSPORT is ses." }}
{{- end }}
{{- if and (index $values.processes "submission-smtp").enabled (not $values.tls.submissionSmtpSecret) }}
{{- $problems = append $problems "tls.submissionSmtpSecret is required with submission-smtp: passwords are accepted only over TLS." }}
{{- end }}
{{- if and $values.dkim.existingSecret (not $settings.DKIM_SHARED_SELECTOR) }}
{{- $problems = append $problems "settings.DKIM_SHARED_SELECTOR is required with dkim.existingSecret: the name of the key in DNS." }}
{{- end }}
{{- if and $settings.DKIM_SHARED_SELECTOR (not $values.dkim.existingSecret) }}
{{- $problems = append $problems "dkim.existingSecret is required with settings.DKIM_SHARED_SELECTOR: the Secret with the private key." }}
{{- end }}
{{- if and $values.ingress.enabled (not $settings.TRUST_PROXY) }}
{{- $problems = append $problems "settings.TRUST_PROXY is required with ingress.enabled: the addresses of the ingress controller's pods. Without it every client has the address of the ingress controller, and address ranges of keys and limits per address do not work." }}
{{- end }}
{{- if and $values.migrations.existingSecret (not $values.migrations.enabled) }}
{{- $problems = append $problems "migrations.existingSecret has no effect without migrations.enabled." }}
{{- end }}
{{- if $settings.BILLING_ENABLED }}
{{- if not (or $settings.STRIPE_PRICES_DEVELOPER $settings.STRIPE_PRICES_BUSINESS $settings.STRIPE_PRICES_ENTERPRISE) }}
{{- $problems = append $problems "settings.STRIPE_PRICES_DEVELOPER, or the prices of another tier, are required with settings.BILLING_ENABLED (docs/billing.md)." }}
{{- end }}
{{- end }}
{{- if $problems }}
{{- fail (printf "\n\n%s\n" (join "\n" $problems)) }}
{{- end }}
{{- end }}
