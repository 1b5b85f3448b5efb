-- What a user sees about each session on the account page.

ALTER TABLE sessions
  ADD COLUMN address text,
  ADD COLUMN user_agent text;
COMMENT ON COLUMN sessions.address IS 'The network address of its latest recorded use; NULL when an earlier version began it.';
COMMENT ON COLUMN sessions.user_agent IS 'The User-Agent of the browser that began it, cut off; NULL when an earlier version began it.';
COMMENT ON INDEX sessions_of_user IS 'A new password ends the other sessions; the list on the account page.';
