-- Settings of the dashboard: the time zone of a user, and the checklist of an organization that is dismissed.

ALTER TABLE users ADD COLUMN time_zone text CHECK (time_zone <> '');
COMMENT ON COLUMN users.time_zone IS 'The time zone in which the dashboard shows times, by its IANA name; NULL is that of the browser.';

ALTER TABLE organizations ADD COLUMN checklist_dismissed_at timestamptz(3);
COMMENT ON COLUMN organizations.checklist_dismissed_at IS
  'When a member dismissed the checklist of first steps in the dashboard; NULL shows it until all steps are done.';
