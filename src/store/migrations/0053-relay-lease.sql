-- Relays of several APIs that dispatch at the same time form smaller groups from the same emails, so that an email costs more. One
-- holds a lease and dispatches, the others stand by. Relays of the version before do not know it: rows stay locked while they are
-- dispatched, so that each is dispatched once either way.

CREATE UNLOGGED TABLE relay_lease (
  id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  holder text COLLATE "C" NOT NULL,
  expires_at timestamptz(3) NOT NULL
);
COMMENT ON TABLE relay_lease IS 'Which relay dispatches the outbox. It may be lost: the next relay that asks gets it.';
COMMENT ON COLUMN relay_lease.holder IS 'The relay that has it, by a random id.';
COMMENT ON COLUMN relay_lease.expires_at IS 'From then on another relay may take it.';
COMMENT ON INDEX relay_lease_pkey IS 'The only row: taken, renewed, released.';
