#!/bin/sh
# hand-over <client ip> <helo> <queue id> <sender> <recipient>... <mail
# Called by pipe(8) of Postfix. Reads PROVIDER_RAW_SECRET and API_URL from a file that only its user can read. Needs
# curl 7.87. Exit status (sysexits): 67 and 69 bounce the message to its sender, 75 keeps it in the queue for a retry.
settings=${HAND_OVER_SETTINGS:-/etc/agentmail.env}
[ -r "$settings" ] && . "$settings" || exit 75
ip=$1 helo=$2 id=$3 from=$4; shift 4
# A message that was created on this host has no client.
case $ip in '' | unknown) ip=127.0.0.1 ;; esac
mail=$(mktemp) || exit 75
trap 'rm -f "$mail"' EXIT
cat > "$mail" || exit 75
time=$(date +%s) hash=$(sha256sum "$mail" | cut -d' ' -f1) to=$(IFS=,; printf %s "$*")
signature=$(printf 'v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s' "$time" "$from" "$to" "$ip" "$helo" "$id" "$hash" |
  openssl dgst -sha256 -hmac "$PROVIDER_RAW_SECRET" -r | cut -d' ' -f1)
for address; do set -- "$@" --url-query "rcpt_to=$address"; shift; done
status=$(curl -s -o /dev/null -w '%{http_code}' --max-time 300 -X POST -T "$mail" "$API_URL/api/v1/providers/raw" \
  -H 'Content-Type: message/rfc822' -H "X-Provider-Timestamp: $time" -H "X-Provider-Content-SHA256: $hash" \
  -H "X-Provider-Signature: v1=$signature" --url-query "mail_from=$from" --url-query "client_ip=$ip" \
  --url-query "helo=$helo" --url-query "id=$id" "$@")
case $status in 200) exit 0 ;; 404) exit 67 ;; 400 | 413 | 422) exit 69 ;; *) exit 75 ;; esac
