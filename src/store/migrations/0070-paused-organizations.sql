-- An organization whose calls a provider leaves without a reply is paused at that provider alone.

COMMENT ON COLUMN provider_pauses.sender IS
  'Empty for the whole account; otherwise what alone is paused: the sender''s domain, stream: and the name of a message stream, organization: or hanging: and the id of an organization, or the id of a number.';
