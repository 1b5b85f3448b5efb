-- Who signs in to the dashboard, what they may do there, and what was changed by whom.

CREATE TABLE users (
  id         text COLLATE "C" PRIMARY KEY,
  email      text COLLATE "C" NOT NULL CHECK (email = lower(email)),
  name       text NOT NULL,
  password   text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON COLUMN users.name IS 'May be empty.';
COMMENT ON COLUMN users.password IS 'scrypt$log2(N)$r$p$salt$hash, both in base64url.';
COMMENT ON INDEX users_pkey IS 'Whose session is it?';
CREATE UNIQUE INDEX users_by_email ON users (email);
COMMENT ON INDEX users_by_email IS 'Signing in; refuses a second user of one address.';

CREATE TABLE memberships (
  org_id     text COLLATE "C" NOT NULL REFERENCES organizations,
  user_id    text COLLATE "C" NOT NULL REFERENCES users,
  role       text NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, user_id)
);
COMMENT ON INDEX memberships_pkey IS 'One member, and the owners of an organization.';
CREATE INDEX memberships_of_user ON memberships (user_id, org_id);
COMMENT ON INDEX memberships_of_user IS 'Every page: which organizations is this user in?';
CREATE INDEX memberships_newest ON memberships (org_id, created_at, user_id);
COMMENT ON INDEX memberships_newest IS 'The list of an organization''s members.';

CREATE TABLE sessions (
  sha256       bytea PRIMARY KEY CHECK (octet_length(sha256) = 32),
  user_id      text COLLATE "C" NOT NULL REFERENCES users,
  org_id       text COLLATE "C" REFERENCES organizations,
  flash        text,
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  last_seen_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at   timestamptz(3) NOT NULL
);
COMMENT ON COLUMN sessions.sha256 IS 'Of the token in the browser''s cookie, which is not kept.';
COMMENT ON COLUMN sessions.org_id IS 'The organization that is looked at; NULL for a user who was in none.';
COMMENT ON COLUMN sessions.flash IS 'What the next page tells of the change that led to it.';
COMMENT ON COLUMN sessions.last_seen_at IS 'Written every few minutes, not with every request.';
COMMENT ON INDEX sessions_pkey IS 'Every page: whose session is it?';
CREATE INDEX sessions_of_user ON sessions (user_id);
COMMENT ON INDEX sessions_of_user IS 'A new password ends the other sessions.';
CREATE INDEX sessions_by_end ON sessions (expires_at);
COMMENT ON INDEX sessions_by_end IS 'Forgets sessions that are over.';

CREATE TABLE sign_in_failures (
  subject text COLLATE "C" PRIMARY KEY,
  tries   integer NOT NULL,
  since   timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE sign_in_failures IS 'Tries to sign in that have not succeeded, per email and per network address.';
COMMENT ON COLUMN sign_in_failures.subject IS 'email:… or address:….';
COMMENT ON INDEX sign_in_failures_pkey IS 'Signing in: is it this one''s turn?';
CREATE INDEX sign_in_failures_by_age ON sign_in_failures (since);
COMMENT ON INDEX sign_in_failures_by_age IS 'Forgets those that are over.';

CREATE TABLE invitations (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL REFERENCES organizations,
  sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),
  email      text COLLATE "C" NOT NULL CHECK (email = lower(email)),
  role       text NOT NULL CHECK (role IN ('owner', 'member', 'viewer')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  expires_at timestamptz(3) NOT NULL
);
COMMENT ON COLUMN invitations.sha256 IS 'Of the token in the link, which is not kept.';
COMMENT ON INDEX invitations_pkey IS 'Taking one back.';
CREATE UNIQUE INDEX invitations_by_token ON invitations (sha256);
COMMENT ON INDEX invitations_by_token IS 'Accepting one.';
CREATE UNIQUE INDEX invitations_of_org ON invitations (org_id, email);
COMMENT ON INDEX invitations_of_org IS 'The list of an organization''s open invitations; a new one to the same address replaces the old.';

CREATE TABLE audit_log (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL REFERENCES organizations,
  at         timestamptz(3) NOT NULL DEFAULT now(),
  actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'key', 'system')),
  actor_id   text COLLATE "C" NOT NULL,
  action     text NOT NULL,
  target     text,
  detail     jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON COLUMN audit_log.actor_id IS 'The user''s or key''s id; for the system the name of its part.';
COMMENT ON COLUMN audit_log.action IS 'What it was done to and what was done: webhooks.create.';
COMMENT ON COLUMN audit_log.target IS 'The id of what was changed, or NULL.';
COMMENT ON INDEX audit_log_pkey IS 'One entry.';
CREATE INDEX audit_log_newest ON audit_log (org_id, at, id);
COMMENT ON INDEX audit_log_newest IS 'The list of an organization''s changes, newest first.';
