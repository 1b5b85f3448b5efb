-- When an endpoint was disabled.

ALTER TABLE webhook_endpoints ADD COLUMN disabled_at timestamptz(3);
COMMENT ON COLUMN webhook_endpoints.disabled_at IS
  'When it was disabled; NULL while it is enabled, and for one that was disabled before this column existed.';
