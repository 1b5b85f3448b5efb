-- without a transaction
-- Deliveries of an endpoint are listed from the index by status, which has three: a second index of all of them took an entry when a
-- delivery was stored, and another when it was recorded. The version before sorts an endpoint's deliveries to list them.

DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_newest;
COMMENT ON INDEX webhook_deliveries_by_status IS 'The list of an endpoint''s deliveries with some statuses, latest first.';
