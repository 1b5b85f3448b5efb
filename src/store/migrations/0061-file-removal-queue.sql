-- Upkeep moves files that it tries to delete to the end of its queue, so that those that cannot be deleted do not block others.

COMMENT ON COLUMN attachments.look_at IS
  'The next check by upkeep: when the file may have expired, which it never has before, or, if it has, after the last attempt to delete it.';
COMMENT ON COLUMN file_reservations.abandoned_at IS
  'When upkeep last began to remove the file; an email that refers to it can no longer be stored.';
