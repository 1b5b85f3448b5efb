-- A second factor for the dashboard (TOTP, RFC 6238) with recovery codes, which organizations can require.
-- on purpose: sign_in_attempts accepts every kind that it accepted before, and one more

CREATE TABLE second_factors (
  user_id      text COLLATE "C" PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  sealed       bytea NOT NULL,
  last_step    bigint NOT NULL DEFAULT 0,
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  confirmed_at timestamptz(3)
);
COMMENT ON COLUMN second_factors.sealed IS 'The secret of the codes, sealed with a key of SECRET_KEY about the user''s id.';
COMMENT ON COLUMN second_factors.last_step IS 'The time step of the latest code that was accepted: it and earlier ones are not accepted again.';
COMMENT ON COLUMN second_factors.confirmed_at IS 'When the user entered a first code; sign-in asks for codes from then on. NULL during the set-up.';
COMMENT ON INDEX second_factors_pkey IS 'Sign-in and every page: does this user have a second factor?';

CREATE TABLE recovery_codes (
  user_id    text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
  sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, sha256)
);
COMMENT ON TABLE recovery_codes IS 'Codes that replace a lost second factor. Each works once and is deleted then.';
COMMENT ON COLUMN recovery_codes.sha256 IS 'Of the code, which has 80 random bits and is not stored.';
COMMENT ON INDEX recovery_codes_pkey IS 'Using a code; how many a user has.';

ALTER TABLE organizations ADD COLUMN requires_second_factor boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN organizations.requires_second_factor IS 'Whether its members must have a second factor to open its pages.';

ALTER TABLE sign_in_attempts
  DROP CONSTRAINT sign_in_attempts_kind_check,
  ADD CONSTRAINT sign_in_attempts_kind_check CHECK (kind IN (
    'network', 'pair', 'pair_day', 'email', 'browser', 'password', 'code',
    'reset_network', 'reset_pair', 'reset_email', 'invite_org', 'invite_email')) NOT VALID;
COMMENT ON COLUMN sign_in_attempts.kind IS
  'network: IPv4 address or IPv6 /64; pair, pair_day: email and network; email: all unknown browsers; browser: email in a known browser; password: the current password of a signed-in user; code: a user''s second factor; reset_*: requests for a password reset by network, by email and network, by email; invite_*: emailed invitations of an organization, and to an email.';
