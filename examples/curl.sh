#!/bin/sh
# The bridge by hand. Start `make demo`, then run this file, or paste it line by line:
#
#     KEY=mp_live_… sh examples/curl.sh

BRIDGE=${BRIDGE:-http://127.0.0.1:8000/bridge/v1}
SUBJECT=${SUBJECT:-fern-1001}
AUTH="Authorization: Bearer ${KEY:?make demo prints a KEY}"
JSON="Content-Type: application/json"
CUSTOMER="$BRIDGE/subjects/$SUBJECT"
SESSION="curl-$(date +%s)"

echo "# 1. What every turn should know, and what fits this message: fenced text, as it goes into a prompt"
curl -sS -H "$AUTH" -H "$JSON" "$CUSTOMER/context" -d '{"message": "Something for dinner, please", "format": "block"}'

echo "# 2. Hand over what was said. 202: it cannot be lost any more"
curl -sS -H "$AUTH" -H "$JSON" -H "Idempotency-Key: $SESSION-1" "$CUSTOMER/turns" -o /tmp/memory-turns.$$ \
  -w '%{http_code}\n' -d '{"session_id": "'"$SESSION"'", "messages": [
    {"role": "user", "content": "I always drink decaf coffee."},
    {"role": "assistant", "content": [{"type": "text", "text": "Decaf it is."}]}]}'
JOB=$(sed -n 's/.*"job_id": *"\([^"]*\)".*/\1/p' /tmp/memory-turns.$$); rm -f /tmp/memory-turns.$$

echo "# 3. Watch it being read; nothing in production waits for this"
TRIES=0
until curl -sS -H "$AUTH" "$BRIDGE/jobs/$JOB" | grep -qE '"state": *"(done|parked|discarded)"' || [ "$TRIES" -ge 60 ]; do
  TRIES=$((TRIES + 1)); sleep 1
done
curl -sS -H "$AUTH" "$BRIDGE/jobs/$JOB"; echo

echo "# 4. Ask about a topic"
curl -sS -H "$AUTH" -H "$JSON" "$CUSTOMER/facts:search" -d '{"topic": "coffee"}'; echo

# A second run is answered 202, "proposed": what was forgotten in step 6 stays forgotten until the customer says otherwise.
echo "# 5. Write a fact by name, and overwrite it: the version that was read goes along"
curl -sS -X PUT -H "$AUTH" -H "$JSON" "$CUSTOMER/facts/tea" -d '{"value": "drinks green tea in the morning"}'; echo
VERSION=$(curl -sS -D - -o /dev/null -H "$AUTH" "$CUSTOMER/facts/tea" | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: *//p')
curl -sS -X PUT -H "$AUTH" -H "$JSON" -H "If-Match: $VERSION" "$CUSTOMER/facts/tea" -d '{"value": "drinks black tea in the morning"}'; echo

echo "# 6. Forget it. 204: gone, for every reader"
curl -sS -X DELETE -H "$AUTH" "$CUSTOMER/facts/tea" -o /dev/null -w '%{http_code}\n'
