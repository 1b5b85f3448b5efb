COMMENT ON COLUMN webhook_events.payload IS
  'The body that the first attempt that failed has posted, for the attempts after it. NULL: the body follows from the event and its email.';
