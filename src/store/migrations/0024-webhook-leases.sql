-- Webhook workers lease endpoints in this table, instead of a workflow for each endpoint.

ALTER TABLE webhook_endpoints
  ADD COLUMN leased_by text,
  ADD COLUMN leased_until timestamptz(3);
COMMENT ON COLUMN webhook_endpoints.leased_by IS 'The worker that posts its deliveries, and that no other worker may disturb until leased_until.';
COMMENT ON COLUMN webhook_endpoints.leased_until IS 'When the lease lapses unless its holder renews it.';
COMMENT ON COLUMN webhook_endpoints.idle IS 'Used by the version before: whether the workflow of the endpoint must be woken for a new delivery.';
COMMENT ON INDEX webhook_deliveries_due IS
  'Which endpoints have due deliveries (lease_endpoints), and the due deliveries of one (find_due).';
