-- Organizations that the operator suspended.

ALTER TABLE organizations
  ADD COLUMN suspended_at timestamptz(3),
  ADD COLUMN suspended_reason text CHECK (suspended_reason <> '');
COMMENT ON COLUMN organizations.suspended_at IS
  'When the operator suspended it; NULL is active. While it is suspended, nothing new is accepted for sending, and accepted messages wait.';
COMMENT ON COLUMN organizations.suspended_reason IS 'Why it is suspended, as its members read it in the dashboard; NULL without one.';
