-- SMS: senders, recipients that opted out of one, and received messages.

CREATE TABLE sms_senders (
  id                    text COLLATE "C" PRIMARY KEY,
  org_id                text COLLATE "C" NOT NULL REFERENCES organizations (id),
  number                text COLLATE "C" CHECK (number ~ '^(\+[1-9][0-9]{4,14}|[0-9]{3,8})$'),
  messaging_service_sid text COLLATE "C" CHECK (messaging_service_sid ~ '^MG[0-9a-f]{32}$'),
  countries             text[] NOT NULL,
  created_at            timestamptz(3) NOT NULL DEFAULT now(),
  CHECK (num_nonnulls(number, messaging_service_sid) = 1)
);
COMMENT ON TABLE sms_senders IS 'Senders of SMS, all of the operator''s account at Twilio.';
COMMENT ON COLUMN sms_senders.number IS 'E.164, or a short code.';
COMMENT ON COLUMN sms_senders.countries IS 'ISO 3166-1 alpha-2 of the recipients that it serves; empty for all.';
COMMENT ON INDEX sms_senders_pkey IS 'One sender by its id.';
CREATE UNIQUE INDEX sms_senders_number ON sms_senders (number);
COMMENT ON INDEX sms_senders_number IS 'Refuses a number that is connected already, and finds the receiver of an inbound message.';
CREATE UNIQUE INDEX sms_senders_messaging_service ON sms_senders (messaging_service_sid);
COMMENT ON INDEX sms_senders_messaging_service IS 'The same of messaging services.';
CREATE INDEX sms_senders_of_org ON sms_senders (org_id, created_at, id);
COMMENT ON INDEX sms_senders_of_org IS 'Chooses the sender of a message, and lists an organization''s senders.';

CREATE TABLE sms_opt_outs (
  org_id     text COLLATE "C" NOT NULL,
  sender     text COLLATE "C" NOT NULL,
  recipient  text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (org_id, sender, recipient)
);
COMMENT ON TABLE sms_opt_outs IS 'Recipients that get nothing from a sender: they sent STOP, or Twilio refused a message for that.';
COMMENT ON COLUMN sms_opt_outs.sender IS 'Its number or messaging service rather than its id: an opt-out outlives a sender that is removed and added again.';
COMMENT ON COLUMN sms_opt_outs.recipient IS 'E.164.';
COMMENT ON INDEX sms_opt_outs_pkey IS 'Whether a message is suppressed, when it is claimed.';

CREATE TABLE sms_received (
  provider_message_id text COLLATE "C" PRIMARY KEY,
  received_at         timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE sms_received IS 'Inbound messages that were processed; kept 30 days.';
COMMENT ON INDEX sms_received_pkey IS 'Detects a repeated callback.';
CREATE INDEX sms_received_by_time ON sms_received (received_at);
COMMENT ON INDEX sms_received_by_time IS 'Deletes old rows.';
