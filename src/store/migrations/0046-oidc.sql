-- Sign-in by OpenID Connect, which organizations can require.

CREATE TABLE oidc_identities (
  issuer     text COLLATE "C" NOT NULL,
  subject    text COLLATE "C" NOT NULL,
  user_id    text COLLATE "C" NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (issuer, subject),
  UNIQUE (user_id, issuer)
);
COMMENT ON TABLE oidc_identities IS 'Which identity of an identity provider signs in as which user.';
COMMENT ON COLUMN oidc_identities.issuer IS 'The claim iss of the ID token.';
COMMENT ON COLUMN oidc_identities.subject IS 'The claim sub, which an issuer never gives to another person, unlike an address.';
COMMENT ON INDEX oidc_identities_pkey IS 'Signing in.';
COMMENT ON INDEX oidc_identities_user_id_issuer_key IS
  'Refuses a second identity of one user, since the issuer may have given the address to another person; removing the identities of a user.';

ALTER TABLE sessions ADD COLUMN by_oidc boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN sessions.by_oidc IS 'Whether it began by a sign-in by OpenID Connect; false for one by password or invitation link.';

ALTER TABLE organizations ADD COLUMN requires_oidc boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN organizations.requires_oidc IS 'Whether its pages open only in sessions that began by OpenID Connect.';
