-- Password resets and invitations by email. The links are inserted when the emails are sent, so no stored body contains one.
-- on purpose: sign_in_attempts accepts every kind that it accepted before, and four more

CREATE TABLE account_links (
  email_id   text COLLATE "C" PRIMARY KEY,
  sealed     bytea NOT NULL,
  expires_at timestamptz(3) NOT NULL
);
COMMENT ON TABLE account_links IS
  'The link of an email about an account, which takes the place of a placeholder in its body when it is sent. Members of the organization that sends it read the body without the link.';
COMMENT ON COLUMN account_links.email_id IS 'The email. The row is written before it, so this is no foreign key.';
COMMENT ON COLUMN account_links.sealed IS 'Sealed with a key of SECRET_KEY about the email''s id.';
COMMENT ON INDEX account_links_pkey IS 'Claiming an email whose body has the placeholder.';
CREATE INDEX account_links_by_end ON account_links (expires_at);
COMMENT ON INDEX account_links_by_end IS 'Deletes expired links.';

CREATE TABLE password_resets (
  sha256     bytea PRIMARY KEY CHECK (octet_length(sha256) = 32),
  user_id    text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL
);
COMMENT ON TABLE password_resets IS 'Links to choose a new password. Each is deleted when it or the password has been used to change the password.';
COMMENT ON COLUMN password_resets.sha256 IS 'Of the token in the link, which is not stored.';
COMMENT ON INDEX password_resets_pkey IS 'Using a link.';
CREATE INDEX password_resets_of_user ON password_resets (user_id);
COMMENT ON INDEX password_resets_of_user IS 'A new password ends the other links of its user.';
CREATE INDEX password_resets_by_end ON password_resets (expires_at);
COMMENT ON INDEX password_resets_by_end IS 'Deletes expired links.';

ALTER TABLE invitations ADD COLUMN emailed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN invitations.emailed IS
  'Whether only the email contains the link. Who accepts it then holds the address, which the inviter could otherwise only claim.';

ALTER TABLE sign_in_attempts
  DROP CONSTRAINT sign_in_attempts_kind_check,
  ADD CONSTRAINT sign_in_attempts_kind_check CHECK (kind IN (
    'network', 'pair', 'pair_day', 'email', 'browser', 'password',
    'reset_network', 'reset_pair', 'reset_email', 'invite_org', 'invite_email')) NOT VALID;
COMMENT ON COLUMN sign_in_attempts.kind IS
  'network: IPv4 address or IPv6 /64; pair, pair_day: email and network; email: all unknown browsers; browser: email in a known browser; password: the current password of a signed-in user; reset_*: requests for a password reset by network, by email and network, by email; invite_*: emailed invitations of an organization, and to an email.';
