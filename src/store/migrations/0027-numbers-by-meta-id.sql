-- without a transaction
-- Meta names the receiving number by its own id.

DROP INDEX CONCURRENTLY IF EXISTS chat_numbers_by_meta_id;

CREATE INDEX CONCURRENTLY chat_numbers_by_meta_id ON chat_numbers (phone_number_id) WHERE phone_number_id IS NOT NULL;

COMMENT ON INDEX chat_numbers_by_meta_id IS 'A message of a user: which number received it?';
