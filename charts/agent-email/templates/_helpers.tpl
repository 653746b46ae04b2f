{{- define "agent-email.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* 40 characters, since the names of the processes follow, and a name may have 63. */}}
{{- define "agent-email.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels that select the pods of a process. Takes a dict of root and component. */}}
{{- define "agent-email.selectorLabels" -}}
app.kubernetes.io/name: {{ include "agent-email.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Without the version of the chart, so that a new one restarts only the pods that it changes. */}}
{{- define "agent-email.podLabels" -}}
{{ include "agent-email.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | trunc 63 | quote }}
{{- with .root.Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "agent-email.labels" -}}
{{ include "agent-email.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{- define "agent-email.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion }}
{{- .Values.image.repository }}:{{ $tag }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The Secret with the login of the schema's owner. */}}
{{- define "agent-email.migrationSecret" -}}
{{- .Values.migrations.existingSecret | default .Values.existingSecret }}
{{- end }}

{{/*
The processes that are enabled, with what is the same in every installation.
  drainSeconds  docs/upgrades.md, "Rolling restart"
  pauseSeconds  before SIGTERM, for processes behind a Service: until the load balancers know that the pod stops
  ports         the first one serves /health and /metrics
*/}}
{{- define "agent-email.processes" -}}
{{- $all := fromYaml (include "agent-email.allProcesses" .) }}
{{- range $name, $process := $all }}
{{- if include "agent-email.isEnabled" (dict "root" $ "component" $name) }}
{{ $name }}: {{ toJson $process }}
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty if the process is enabled. Only the listeners can be turned off. */}}
{{- define "agent-email.isEnabled" -}}
{{- $values := index .root.Values.processes .component }}
{{- if or (not (hasKey $values "enabled")) $values.enabled }}yes{{ end }}
{{- end }}

{{- define "agent-email.allProcesses" -}}
api:
  script: api/server.ts
  drainSeconds: 15
  pauseSeconds: 5
  # The image's small young generation is for workers. Here it would make a request cost more processor time.
  nodeOptions: --max-semi-space-size=16
  health: http
  ports: { http: 3000 }
worker-outbound:
  script: workers/outbound.ts
  drainSeconds: 660
  health: health
  ports: { health: 3001 }
worker-inbound:
  script: workers/inbound.ts
  drainSeconds: 30
  health: health
  ports: { health: 3001 }
worker-webhooks:
  script: workers/webhooks.ts
  drainSeconds: 30
  health: health
  ports: { health: 3001 }
worker-maintenance:
  script: workers/maintenance.ts
  drainSeconds: 30
  # A larger young generation would let the heap of an export grow by another 100 MiB before a collection.
  nodeOptions: --max-semi-space-size=2 --max-old-space-size=512
  health: health
  ports: { health: 3001 }
inbound-smtp:
  script: workers/inbound-smtp.ts
  drainSeconds: 30
  pauseSeconds: 5
  health: health
  ports: { health: 3001, smtp: 2526 }
submission-smtp:
  script: workers/submission-smtp.ts
  drainSeconds: 30
  pauseSeconds: 5
  health: health
  ports: { health: 3001, submission: 2587, submissions: 2465 }
{{- end }}

{{- define "agent-email.podSecurityContext" -}}
runAsNonRoot: true
# The user "node" of the image.
runAsUser: 1000
runAsGroup: 1000
# Reads mounted Secrets.
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "agent-email.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* What the pods of processes and of jobs have in common. */}}
{{- define "agent-email.pod" -}}
automountServiceAccountToken: false
# Kubernetes would otherwise set variables such as API_PORT for a Service named "api".
enableServiceLinks: false
# As `init: true` in docker-compose.yml: as PID 1, Node would ignore a SIGTERM that comes before it serves.
shareProcessNamespace: true
securityContext:
  {{- include "agent-email.podSecurityContext" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
