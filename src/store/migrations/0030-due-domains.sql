-- Workers poll this table for due checks, instead of a workflow for each domain.

COMMENT ON COLUMN domains.next_check_at IS
  'When it is due for a check; during one, when the lease of the check lapses. NULL when it is not checked.';
COMMENT ON INDEX domains_to_check IS 'The domains that are due (claim_due_domains).';
COMMENT ON INDEX outbox_domains IS 'Used by the version before: the relay woke the workflows of domains.';
