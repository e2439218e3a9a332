{{/* Names. Kubernetes allows 63 characters; "-headless" and "-migrate-…" need 30 of them. */}}
{{- define "onceward.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 33 | trimSuffix "-" -}}
{{- end -}}

{{- define "onceward.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $full | trunc 33 | trimSuffix "-" -}}
{{- end -}}

{{- define "onceward.serviceAccountName" -}}
{{- $default := ternary (include "onceward.fullname" .) "default" .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default $default -}}
{{- end -}}

{{/* Labels of all pods of the release: replicas, migrations and HTTP proxies. */}}
{{- define "onceward.podLabels" -}}
app.kubernetes.io/name: {{ include "onceward.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Selects replicas only: a migration's pod must not get calls. */}}
{{- define "onceward.selectorLabels" -}}
{{ include "onceward.podLabels" . }}
app.kubernetes.io/component: replica
{{- end -}}

{{/* Selects HTTP proxies only. */}}
{{- define "onceward.httpProxyLabels" -}}
{{ include "onceward.podLabels" . }}
app.kubernetes.io/component: http-proxy
{{- end -}}

{{- define "onceward.labels" -}}
{{- include "onceward.labelsWith" (dict "root" . "own" dict) -}}
{{- end -}}

{{/* The same for an object with labels of its own, which replace those of commonLabels. Expects "root" and "own". */}}
{{- define "onceward.labelsWith" -}}
{{- with merge (deepCopy .own) .root.Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
{{- with .root -}}
{{ include "onceward.podLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{/* Expects "root", and an "image" of the values. */}}
{{- define "onceward.image" -}}
{{- with .image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.root.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "onceward.tag" -}}
{{- .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{/* Seconds, rounded up, of a duration such as 250ms, 3s or 5m. */}}
{{- define "onceward.seconds" -}}
{{- $number := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- if eq $unit "ms" -}}
{{- div (add $number 999) 1000 -}}
{{- else -}}
{{- mul $number (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit | int64) -}}
{{- end -}}
{{- end -}}

{{/* The drain, and 10 s to close connections to Postgres and Redis. */}}
{{- define "onceward.graceSeconds" -}}
{{- $delay := .Values.config.ONCEWARD_DRAIN_DELAY | required "config.ONCEWARD_DRAIN_DELAY is required: the grace period follows from it" -}}
{{- $timeout := .Values.config.ONCEWARD_DRAIN_TIMEOUT | required "config.ONCEWARD_DRAIN_TIMEOUT is required: the grace period follows from it" -}}
{{- add (include "onceward.seconds" $delay) (include "onceward.seconds" $timeout) 10 -}}
{{- end -}}

{{/* HTTP or HTTPS, as probes and monitors write it. */}}
{{- define "onceward.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty .Values.tls.existingSecret)) -}}
{{- end -}}

{{/* The job of the release's metrics. Alerts and dashboards separate installations by it. */}}
{{- define "onceward.job" -}}
onceward/{{ .Release.Namespace }}/{{ include "onceward.fullname" . }}
{{- end -}}
