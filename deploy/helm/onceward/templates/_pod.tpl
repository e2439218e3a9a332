{{/* Names of the secrets that a container gets, as JSON. Takes the same as onceward.env. */}}
{{- define "onceward.secretNames" -}}
{{- $names := list -}}
{{- range $name, $source := .root.Values.secrets -}}
{{- if and $source.existingSecret (or $.migrates (ne $name "DATABASE_DIRECT_URL")) -}}
{{- $names = append $names $name -}}
{{- end -}}
{{- end -}}
{{- $names | toJson -}}
{{- end -}}

{{/* Files with the values of secrets. Takes the same as onceward.env. */}}
{{- define "onceward.secretsVolume" -}}
- name: {{ ternary "migration-secrets" "secrets" .migrates }}
  projected:
    defaultMode: 0440
    sources:
      {{- range $name := include "onceward.secretNames" . | fromJsonArray }}
      {{- $source := index $.root.Values.secrets $name }}
      - secret:
          name: {{ $source.existingSecret }}
          items:
            - key: {{ $source.key | default $name }}
              path: {{ $name }}
      {{- end }}
{{- end -}}

{{/* Environment of a container: `migrates` gives it the direct URL, too. Takes (dict "root" $ "migrates" bool). */}}
{{- define "onceward.env" -}}
{{- $values := .root.Values -}}
{{- range $name, $value := $values.config }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ ternary (printf "%.0f" $value) (toString $value) (kindIs "float64" $value) | quote }}
{{- end }}
{{- end }}
{{- range $name := include "onceward.secretNames" . | fromJsonArray }}
- name: {{ $name }}_FILE
  value: /run/secrets/onceward/{{ $name }}
{{- end }}
{{- with $values.tls }}
{{- if .existingSecret }}
- name: ONCEWARD_TLS_CERT
  value: /etc/onceward/tls/{{ .certKey }}
- name: ONCEWARD_TLS_KEY
  value: /etc/onceward/tls/{{ .keyKey }}
{{- end }}
{{- if .clientCa.existingSecret }}
- name: ONCEWARD_TLS_CLIENT_CA
  value: /etc/onceward/client-ca/{{ .clientCa.key }}
{{- end }}
{{- end }}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Volumes that all pods have. Whole Secrets, without subPath: so renewed certificates arrive in the container. */}}
{{- define "onceward.volumes" -}}
{{- with .Values.tls }}
{{- if .existingSecret }}
- name: tls
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
{{- end }}
{{- if .clientCa.existingSecret }}
- name: client-ca
  secret:
    secretName: {{ .clientCa.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes the same as onceward.env. */}}
{{- define "onceward.volumeMounts" -}}
- name: {{ ternary "migration-secrets" "secrets" .migrates }}
  mountPath: /run/secrets/onceward
  readOnly: true
{{- with .root }}
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/onceward/tls
  readOnly: true
{{- end }}
{{- if .Values.tls.clientCa.existingSecret }}
- name: client-ca
  mountPath: /etc/onceward/client-ca
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What all containers of the server have in common. Takes the same as onceward.env. */}}
{{- define "onceward.container" -}}
image: {{ include "onceward.image" (dict "root" .root "image" .root.Values.image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  {{- include "onceward.env" . | trim | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  {{- include "onceward.volumeMounts" . | trim | nindent 2 }}
{{- end -}}

{{- define "onceward.migration" -}}
name: migrate
args: [migrate{{ if .Values.migrations.job.citus }}, --citus{{ end }}]
{{ include "onceward.container" (dict "root" . "migrates" true) }}
resources:
  {{- toYaml .Values.migrations.resources | nindent 2 }}
{{- end -}}

{{/* Grants the role of replicas its rights on the tables that the migration before it made, as the tables' owner. */}}
{{- define "onceward.serviceRole" -}}
name: service-role
image: {{ .Values.serviceRole.image }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [sh, -c, 'exec psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --file /run/service-role/service-role.sql "$(cat /run/service-role/owner_url)"']
env:
  - name: SERVICE_PASSWORD_FILE
    value: /run/service-role/password
  {{- with .Values.serviceRole.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: service-role
    mountPath: /run/service-role
    readOnly: true
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources:
  {{- toYaml .Values.serviceRole.resources | nindent 2 }}
{{- end -}}

{{- define "onceward.serviceRoleVolume" -}}
{{- $owner := .Values.secrets.DATABASE_DIRECT_URL -}}
{{- $password := .Values.serviceRole.password -}}
- name: service-role
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ include "onceward.fullname" . }}-service-role
      - secret:
          name: {{ $owner.existingSecret }}
          items:
            - key: {{ $owner.key | default "DATABASE_DIRECT_URL" }}
              path: owner_url
      - secret:
          name: {{ $password.existingSecret }}
          items:
            - key: {{ $password.key }}
              path: password
{{- end -}}

{{/* What all pods of the server have in common. Takes (dict "root" $ "runs" list), with true for a migration and false for the server. */}}
{{- define "onceward.pod" -}}
volumes:
  {{- range .runs }}
  {{- include "onceward.secretsVolume" (dict "root" $.root "migrates" .) | nindent 2 }}
  {{- if and . $.root.Values.serviceRole.enabled }}
  {{- include "onceward.serviceRoleVolume" $.root | nindent 2 }}
  {{- end }}
  {{- end }}
{{- with .root }}
  {{- with include "onceward.volumes" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{ include "onceward.podOptions" . }}
{{- end }}
{{- end -}}

{{/* Account, security, registry and placement of all pods. */}}
{{- define "onceward.podOptions" -}}
serviceAccountName: {{ include "onceward.serviceAccountName" . }}
automountServiceAccountToken: false
# Kubernetes would set ONCEWARD_SERVICE_HOST and others for the Services: the server refuses names that it does not know.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  {{- with .Values.runAsUser }}
  runAsUser: {{ . }}
  runAsGroup: {{ . }}
  fsGroup: {{ . }}
  {{- end }}
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* How the pods of a Deployment are replaced. */}}
{{- define "onceward.rollout" -}}
{{- with .Values.rollout -}}
progressDeadlineSeconds: {{ .progressDeadlineSeconds }}
minReadySeconds: {{ .minReadySeconds }}
revisionHistoryLimit: {{ .revisionHistoryLimit }}
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxSurge: {{ .maxSurge }}
    maxUnavailable: {{ .maxUnavailable }}
{{- end -}}
{{- end -}}

{{/* Takes (dict "root" $ "alive" PATH "port" NAME "scheme" SCHEME). */}}
{{- define "onceward.probes" -}}
{{- range $name, $path := dict "startup" .alive "liveness" .alive "readiness" "/readyz" }}
{{ $name }}Probe:
  httpGet:
    path: {{ $path }}
    port: {{ $.port }}
    scheme: {{ $.scheme }}
  {{- toYaml (index $.root.Values.probes $name) | nindent 2 }}
{{- end }}
{{- end -}}
