-- Whether opens and clicks of email from a domain are tracked.

ALTER TABLE domains
  ADD COLUMN open_tracking boolean NOT NULL DEFAULT false,
  ADD COLUMN click_tracking boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN domains.open_tracking IS 'Whether email from it gets an image that reports when it is loaded.';
COMMENT ON COLUMN domains.click_tracking IS 'Whether links in the HTML of email from it lead through this service.';
