-- The request that left a row in the outbox, so that its trace goes on in the workflow. Empty where nobody follows requests.

ALTER TABLE outbox ADD COLUMN traceparent text;
COMMENT ON COLUMN outbox.traceparent IS
  'The span of the request that wrote it (W3C Trace Context), where requests are followed; of a group, they are in group_of.';
COMMENT ON COLUMN outbox.group_of IS 'Of a group: {members: [{id, version}], org_id, batch_id, bulk, due_at, traceparents}.';
