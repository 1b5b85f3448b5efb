-- Content of emails expires by setting, and the data of one recipient can be erased.

ALTER TABLE organizations
  ADD COLUMN body_retention_days integer CHECK (body_retention_days >= 0),
  ADD COLUMN bodies_expired_at timestamptz(3),
  ADD COLUMN bodies_expired_id text COLLATE "C";
COMMENT ON COLUMN organizations.body_retention_days IS
  'Days after which bodies and headers of its emails are erased; 0 is never, NULL is the setting BODY_RETENTION_DAYS.';
COMMENT ON COLUMN organizations.bodies_expired_at IS
  'With bodies_expired_id, how far upkeep has come in its emails by (created_at, id): bodies of those before are erased, or listed in held_bodies.';

CREATE TABLE held_bodies (
  email_id text COLLATE "C" PRIMARY KEY,
  org_id text COLLATE "C" NOT NULL,
  look_at timestamptz(3) NOT NULL
);
COMMENT ON TABLE held_bodies IS
  'Emails whose content has outlived its retention and is kept, since they are not sent yet or were sent later. Nearly always few.';
COMMENT ON COLUMN held_bodies.look_at IS 'When upkeep looks at the email again.';
COMMENT ON INDEX held_bodies_pkey IS 'One row for each email.';
CREATE INDEX held_bodies_to_look_at ON held_bodies (look_at);
COMMENT ON INDEX held_bodies_to_look_at IS 'Upkeep: emails that may have been sent meanwhile.';

CREATE TABLE erased_recipients (
  org_id text COLLATE "C" NOT NULL REFERENCES organizations (id),
  hash bytea NOT NULL CHECK (octet_length(hash) = 32),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, hash)
);
COMMENT ON TABLE erased_recipients IS
  'Addresses that were erased and still get nothing: a suppression that does not contain the address.';
COMMENT ON COLUMN erased_recipients.hash IS 'HMAC-SHA256 of the address in lower case, with a key of the organization''s data key.';
COMMENT ON INDEX erased_recipients_pkey IS 'Claiming an email: may its recipients get it?';
