-- The log of API requests. A partition holds a day of it and is dropped as a whole; the functions are those of 0033. Upkeep adds
-- partitions, from the one of today on.

CREATE TABLE api_requests (
  id          text COLLATE "C" NOT NULL,
  org_id      text COLLATE "C" NOT NULL,
  key_id      text COLLATE "C",
  method      text NOT NULL,
  path        text,
  status      smallint NOT NULL CHECK (status BETWEEN 100 AND 599),
  error_code  text,
  duration_ms integer NOT NULL CHECK (duration_ms >= 0),
  PRIMARY KEY (org_id, id)
) PARTITION BY RANGE (id);
COMMENT ON TABLE api_requests IS
  'Requests with an API key, and failed requests of the dashboard. Written in the background; under overload some are left out.';
COMMENT ON COLUMN api_requests.id IS 'The request id of the response. It holds the time of the request.';
COMMENT ON COLUMN api_requests.key_id IS 'The API key; NULL for the dashboard.';
COMMENT ON COLUMN api_requests.path IS 'The path of the route, without the values of its parameters; NULL if no route matched.';
COMMENT ON COLUMN api_requests.error_code IS 'The code in the error response; NULL for a success.';
COMMENT ON INDEX api_requests_pkey IS 'The list of an organization''s requests, latest first; a request by its id.';
CREATE INDEX api_requests_failed ON api_requests (org_id, id) WHERE status >= 400;
COMMENT ON INDEX api_requests_failed IS 'The list of an organization''s failed requests, latest first.';

CREATE TABLE api_requests_default (LIKE api_requests INCLUDING ALL);
ALTER TABLE api_requests ATTACH PARTITION api_requests_default DEFAULT;
SELECT add_partition('api_requests', 'id', to_char(day, 'YYYYMMDD'), 'req_' || substr(email_id_at(day AT TIME ZONE 'UTC'), 4),
                     'req_' || substr(email_id_at((day + interval '1 day') AT TIME ZONE 'UTC'), 4))
FROM date_trunc('day', now() AT TIME ZONE 'UTC') AS day;
