-- What the dashboard shows of webhook deliveries that fail.

ALTER TABLE webhook_deliveries ADD COLUMN status_code integer;
COMMENT ON COLUMN webhook_deliveries.status_code IS
  'Of the response to the latest attempt; NULL before the first, without a response, and if that was before this column existed.';
ALTER TABLE webhook_attempts ADD COLUMN request_headers jsonb;
COMMENT ON COLUMN webhook_attempts.request_headers IS
  'The headers that were sent, with the signature, of an attempt that failed; NULL if it succeeded.';
