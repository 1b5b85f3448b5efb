-- A second rotation within a day must not end the secret with which the endpoint still verifies.
-- on purpose: the version before does not write the new columns, so that the check cannot refuse its rows.
ALTER TABLE webhook_endpoints
  ADD COLUMN older_secret bytea,
  ADD COLUMN older_until timestamptz(3),
  ADD CONSTRAINT webhook_endpoints_older_secret_check CHECK ((older_secret IS NULL) = (older_until IS NULL));
COMMENT ON COLUMN webhook_endpoints.older_secret IS
  'The oldest secret that still signed at the last rotation but was replaced before it; also signs until older_until.';
