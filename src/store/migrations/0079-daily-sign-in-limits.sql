-- Each limit of a shorter window has a limit by day beside it; emails that report something have one too.
-- on purpose: sign_in_attempts accepts every kind that it accepted before, and more

ALTER TABLE sign_in_attempts
  DROP CONSTRAINT sign_in_attempts_kind_check,
  ADD CONSTRAINT sign_in_attempts_kind_check CHECK (kind IN (
    'network', 'pair', 'pair_day', 'email', 'browser', 'password', 'code',
    'reset_network', 'reset_pair', 'reset_email', 'invite_org', 'invite_email',
    'network_day', 'browser_day', 'password_day', 'code_day', 'code_renewal', 'reset_network_day', 'reset_pair_day',
    'invite_new', 'notice')) NOT VALID;
COMMENT ON COLUMN sign_in_attempts.kind IS
  'network: IPv4 address or IPv6 /64; pair: email and network; email: all unknown browsers; browser: email in a known browser; password: the current password of a signed-in user; code: a user''s second factor; code_renewal: password resets that clear code_day; reset_*: requests for a password reset by network, by email and network, by email; invite_*: emailed invitations of an organization, of one whose invitations nobody has accepted (new), and to an email; notice: emails to a user that report something. *_day: the same by day.';
