-- Domains that prove themselves: what must be in DNS, what was found there, and when it is looked at next.

ALTER TABLE domains
  ADD COLUMN trusted        boolean NOT NULL DEFAULT false,
  ADD COLUMN token          text COLLATE "C" NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
  ADD COLUMN dkim_public    text COLLATE "C",
  ADD COLUMN dkim_key       bytea,
  ADD COLUMN dkim_published boolean NOT NULL DEFAULT false,
  ADD COLUMN findings       jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN tried_since    timestamptz(3) NOT NULL DEFAULT now(),
  ADD COLUMN tries          integer NOT NULL DEFAULT 0,
  ADD COLUMN misses         integer NOT NULL DEFAULT 0,
  ADD COLUMN asked_at       timestamptz(3),
  ADD COLUMN last_checked_at timestamptz(3),
  ADD COLUMN next_check_at  timestamptz(3),
  ADD CHECK ((dkim_key IS NULL) = (dkim_public IS NULL)),
  ADD CHECK (NOT trusted OR next_check_at IS NULL),
  ADD CHECK (status <> 'failed' OR next_check_at IS NULL);
-- Until now a domain was verified by hand or not at all.
UPDATE domains SET trusted = true WHERE status = 'verified';
-- Upkeep starts the workflows of those that wait.
UPDATE domains SET next_check_at = now() WHERE status = 'pending';
COMMENT ON COLUMN domains.trusted IS 'Taken on trust by the operator: verified whatever DNS says.';
COMMENT ON COLUMN domains.token IS 'What its organization publishes to prove that the name is its own; another registration has another one.';
COMMENT ON COLUMN domains.dkim_public IS 'The public half of our own DKIM key, base64 of its SubjectPublicKeyInfo; NULL where nothing of ours signs.';
COMMENT ON COLUMN domains.dkim_key IS 'The private half (PKCS #8), sealed with a key of SECRET_KEY.';
COMMENT ON COLUMN domains.dkim_published IS 'Whether the public half was in DNS when that was last asked: what cannot be checked is not signed.';
COMMENT ON COLUMN domains.findings IS 'What DNS answered to each record, by kind and name; see domain/senders/sender-domain.ts.';
COMMENT ON COLUMN domains.tried_since IS 'When the time began in which it must prove itself: registered, or asked to be verified again.';
COMMENT ON COLUMN domains.tries IS 'Background checks since then.';
COMMENT ON COLUMN domains.misses IS 'Daily checks in a row that certainly missed what had been there.';
COMMENT ON COLUMN domains.asked_at IS 'When somebody last had it checked at once: not again within seconds.';
COMMENT ON COLUMN domains.next_check_at IS 'Of its workflow; NULL when it has none.';
CREATE INDEX domains_by_name ON domains (name);
COMMENT ON INDEX domains_by_name IS 'Who else has registered this name? Asked when one proves to be the owner, and before a provider is told to forget it.';
CREATE INDEX domains_of_org ON domains (org_id, created_at, id);
COMMENT ON INDEX domains_of_org IS 'The list of an organization''s domains, newest first.';
CREATE INDEX domains_to_check ON domains (next_check_at) WHERE next_check_at IS NOT NULL;
COMMENT ON INDEX domains_to_check IS 'Upkeep: domains whose workflow is overdue, and must have been lost.';

CREATE TABLE provider_domains (
  name         text COLLATE "C" PRIMARY KEY,
  provider_id  bigint NOT NULL,
  ours         boolean NOT NULL,
  details      jsonb NOT NULL,
  unused_since timestamptz(3),
  tries        integer NOT NULL DEFAULT 0,
  retry_at     timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE provider_domains IS 'Domains in the operator''s Postmark account, which all organizations share.';
COMMENT ON COLUMN provider_domains.ours IS 'Whether we made it there: what was there before is not ours to delete.';
COMMENT ON COLUMN provider_domains.details IS 'The DKIM and return-path records that Postmark wants, and which of them it has seen.';
COMMENT ON COLUMN provider_domains.unused_since IS 'When somebody gave the name up; upkeep then deletes it there, unless somebody else still has it.';
COMMENT ON COLUMN provider_domains.retry_at IS 'Not to be deleted before: put off each time Postmark could not be asked.';
COMMENT ON INDEX provider_domains_pkey IS 'What Postmark wants of a domain.';
CREATE INDEX provider_domains_unused ON provider_domains (retry_at) WHERE unused_since IS NOT NULL;
COMMENT ON INDEX provider_domains_unused IS 'Upkeep: what may have to be deleted at Postmark.';

ALTER TABLE outbox
  DROP CONSTRAINT outbox_action_check,
  ADD CONSTRAINT outbox_action_check CHECK (action IN ('start', 'leave', 'group', 'reschedule', 'cancel', 'webhook', 'chore', 'chat', 'chat_again', 'domain'));
COMMENT ON COLUMN outbox.message_id IS 'The email or chat-app message; for a group the workflow that shall carry it, for a webhook the endpoint, for a domain the domain, for a chore its name.';
CREATE INDEX outbox_domains ON outbox (message_id) WHERE action = 'domain';
COMMENT ON INDEX outbox_domains IS 'The relay starts and wakes what watches domains.';
