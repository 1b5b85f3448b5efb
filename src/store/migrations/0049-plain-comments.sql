-- Comments in plain technical terms. No table changes.

COMMENT ON COLUMN api_keys.last_used_at IS 'The last use, recorded in the background; up to a minute late.';
COMMENT ON INDEX attachments_pkey IS 'Finds one file for its download; checks whether a stored file belongs to an email.';

COMMENT ON TABLE attempts IS 'One row per message and provider call, committed before the call. A row without an outcome is an ambiguous attempt.';
COMMENT ON COLUMN attempts.call IS 'The id that the provider received with this call, by which it can be looked up.';
COMMENT ON COLUMN attempts.outcome IS
  'sent: accepted. refused: rejected permanently. again: not accepted, to be retried. account: refused because of our account; does not count as an attempt. unknown: ambiguous. lost: looked up, and not accepted. risked: it could not be looked up, and the message was sent again.';
COMMENT ON COLUMN attempts.checks IS 'Look-ups of an ambiguous attempt at the provider.';
COMMENT ON COLUMN attempts.denied_at IS 'The first look-up that found nothing; a later one confirms it.';
COMMENT ON COLUMN attempts.code IS 'The provider''s error code; of chat-app messages and SMS only.';
COMMENT ON COLUMN attempts.provider_message_id IS 'The provider''s id of the message if the outcome is sent; NULL for copies.';
COMMENT ON COLUMN attempts.changes IS
  'Changes of the answer that outcome, detail and provider_message_id do not contain: bounces, and the copies of a marketing email. NULL once applied.';

COMMENT ON COLUMN audit_log.actor_id IS 'The id of the user or API key; for the system the name of its component.';
COMMENT ON COLUMN audit_log.action IS 'Resource and verb, such as webhooks.create.';
COMMENT ON COLUMN audit_log.target IS 'The id of the changed resource, or NULL.';

COMMENT ON TABLE batch_moves IS
  'Numbers of members of a batch that changed from one status to another. Rows are only inserted, so that workers do not wait for each other; their sums are the counts of the batch.';
COMMENT ON COLUMN batch_moves.from_status IS 'NULL for acceptance.';
COMMENT ON COLUMN batch_moves.at IS 'The time of the change; of an aggregated row the latest.';
COMMENT ON COLUMN batch_moves.folded IS 'Whether the row is the aggregate of all earlier rows with its two statuses.';
COMMENT ON INDEX batch_moves_unfolded IS 'Finds batches with rows to aggregate, oldest first.';
COMMENT ON COLUMN batches.announced_at IS 'When batch.completed was published; NULL before.';
COMMENT ON INDEX batches_unannounced IS 'Finds batches whose batch.completed may be missing, for upkeep.';

COMMENT ON TABLE chat_contacts IS 'Users who have sent a message to a number of an organization. Written under a lock of the number''s row.';
COMMENT ON COLUMN chat_contacts.wa_number IS 'E.164; NULL if the user hides it.';
COMMENT ON COLUMN chat_contacts.former_user_id IS 'The id before the last change, which late callbacks contain.';
COMMENT ON INDEX chat_contacts_by_former_id IS 'Finds a contact of a callback by its former id.';
COMMENT ON COLUMN chat_events.dedupe_key IS 'Identifies a repeated report; NULL for events that cannot repeat.';
COMMENT ON INDEX chat_events_once IS 'Records a repeated report of a provider once.';
COMMENT ON COLUMN chat_inbound.media IS 'The location of the file at the provider: Meta''s media id, or Twilio''s path.';
COMMENT ON INDEX chat_inbound_once IS 'Records a repeated callback once; finds the message of a reaction or reply.';
COMMENT ON COLUMN chat_messages.number_id IS 'The chat-app number, or the SMS sender.';
COMMENT ON COLUMN chat_messages.content IS
  'The content of the request: text, preview_url, template, image, document. json, not jsonb, to keep the order of fields.';
COMMENT ON COLUMN chat_messages.error_code IS 'The provider''s error code.';
COMMENT ON COLUMN chat_messages.provider IS 'The provider that accepted it; NULL before.';
COMMENT ON COLUMN chat_messages.look_at IS 'The next check by upkeep; NULL if no further event is expected.';
COMMENT ON COLUMN chat_messages.fallback_at IS 'When it was switched to its fallback_template; NULL if it was not.';
COMMENT ON COLUMN chat_numbers.phone_number_id IS 'Meta''s phone number id.';
COMMENT ON COLUMN chat_numbers.account_sid IS 'The number''s own Twilio account; NULL for the account in the settings.';
COMMENT ON COLUMN chat_numbers.credentials IS 'The number''s own token, sealed with a key of SECRET_KEY; NULL for the token in the settings.';
COMMENT ON COLUMN chat_numbers.verified_by IS
  'Who confirmed that the number belongs to the organization: the operator, or the provider by a request with the number''s own token. NULL for numbers connected before this was checked.';
COMMENT ON COLUMN chat_numbers.receives_since IS
  'The first message from a user. A day later the customer-service window of every user is known.';
COMMENT ON INDEX chat_numbers_by_meta_id IS 'Finds the number that received a message.';
COMMENT ON INDEX chat_numbers_of_org IS 'Finds the sender of a message, and lists an organization''s numbers.';
COMMENT ON TABLE chat_templates IS 'The Twilio content of each template of a number, and the order of its variables.';

COMMENT ON COLUMN data_keys.version IS 'Stored in each value that the key has encrypted.';

COMMENT ON COLUMN domains.trusted IS 'Verified by the operator, regardless of DNS.';
COMMENT ON COLUMN domains.token IS 'The value that the organization publishes in DNS to prove ownership; each registration has its own.';
COMMENT ON COLUMN domains.dkim_published IS 'Whether the public key was in DNS at the last check; otherwise email is not signed.';
COMMENT ON COLUMN domains.tried_since IS 'The start of the current verification period: registration, or a request to verify again.';
COMMENT ON COLUMN domains.tries IS 'Background checks in the current verification period.';
COMMENT ON COLUMN domains.misses IS 'Consecutive daily checks that found a record missing.';
COMMENT ON COLUMN domains.asked_at IS 'The last check on request; another one within seconds is refused.';
COMMENT ON COLUMN domains.next_check_at IS 'The next check; while one runs, the expiry of its lease. NULL if it is not checked.';
COMMENT ON INDEX domains_by_name IS 'Finds other registrations of a name, on verification and before it is deleted at a provider.';
COMMENT ON INDEX domains_pkey IS 'Finds a domain by its id.';

COMMENT ON TABLE email_bodies IS 'Separate from emails, whose rows are listed; read once, by the worker that sends.';
COMMENT ON COLUMN email_events.dedupe_key IS 'Identifies a repeated report, or the repeated result of one call; NULL for events that cannot repeat.';
COMMENT ON COLUMN email_events.recipient IS 'The recipient, in lower case; NULL for an event of the whole email.';
COMMENT ON COLUMN email_events.detail IS 'EventDetail: the clicked link, the reply of a server, the times of a reschedule; NULL without.';
COMMENT ON TABLE email_hours IS 'Used by an earlier version instead of stat_totals.';
COMMENT ON TABLE email_moves IS 'Used by an earlier version instead of stat_additions.';
COMMENT ON TABLE email_recipients IS
  'Recipients whose status differs from that of their email: reported individually, suppressed, or with a copy of a marketing email.';
COMMENT ON COLUMN email_recipients.status IS 'queued: a copy that is not sent yet.';
COMMENT ON INDEX email_tags_pkey IS 'Lists by tag, newest first, by the rarest requested tag; tag_bits excludes emails without the others.';
COMMENT ON TABLE email_terms IS 'The search index: one row for each term of a block of emails in one partition. Written in the background.';
COMMENT ON COLUMN email_terms.email_ids IS 'The emails of the block with the term, if they are few.';
COMMENT ON INDEX email_terms_pkey IS 'Finds blocks with a term, newest first.';
COMMENT ON COLUMN emails.schedule_version IS 'Incremented by each reschedule, so that an outdated timer is recognized.';
COMMENT ON COLUMN emails.workflow_id IS 'The Temporal workflow that delivers it: its own id, or that of a group.';
COMMENT ON COLUMN emails.provider IS 'The provider that accepted it; NULL before.';
COMMENT ON COLUMN emails.look_at IS 'The next check by upkeep of an email that seems stuck; NULL before the first.';
COMMENT ON COLUMN emails.suspected_at IS
  'Set before the content is read, and when an attempt has no recorded outcome: the email may have ended its worker and is delivered in an isolated process. NULL after a delivery.';
COMMENT ON COLUMN emails.crashes IS 'Isolated processes that ended while they began to deliver it. At 2 it is quarantined.';
COMMENT ON COLUMN emails.bounced_for IS 'The reason of the first bounce; kept when the status changes.';
COMMENT ON INDEX emails_scheduled IS 'Finds overdue scheduled emails, for upkeep.';
COMMENT ON INDEX emails_unreported IS 'Finds emails without a final report of Postmark, for upkeep. Other providers cannot be queried.';
COMMENT ON TABLE erased_recipients IS 'Erased addresses that remain suppressed, without the address itself.';
COMMENT ON INDEX erased_recipients_pkey IS 'Checks the recipients of an email that is claimed.';

COMMENT ON TABLE expiring_partitions IS 'The partition of emails that is being expired; at most one row.';
COMMENT ON COLUMN expiring_partitions.last_id IS 'Tags of its emails up to this id are no longer counted in tag_counts.';
COMMENT ON INDEX file_reservations_oldest IS 'Finds files of requests that stored no email, for upkeep.';
COMMENT ON TABLE held_bodies IS 'Emails whose content is kept beyond its retention, since they are not sent yet or were sent late. Few rows.';
COMMENT ON COLUMN held_bodies.look_at IS 'The next check by upkeep.';
COMMENT ON TABLE idempotency_keys IS
  'Responses to repeat, written in the transaction that stores what they describe. Valid for 24 hours.';
COMMENT ON INDEX idempotency_keys_pkey IS 'Finds the stored response of a request with a key.';
COMMENT ON COLUMN invitations.sha256 IS 'Hash of the token in the link, which is not stored.';
COMMENT ON COLUMN invitations.emailed IS 'Whether only the email contains the link, so that accepting it proves the address.';
COMMENT ON INDEX invitations_pkey IS 'Revokes an invitation.';
COMMENT ON TABLE monthly_usage IS 'Emails accepted in a calendar month (UTC), of organizations with a quota only, so that others do not wait for a counter.';

COMMENT ON TABLE outbox IS 'Requests to Temporal that the relay has to make. A row is deleted after Temporal has accepted it.';
COMMENT ON COLUMN outbox.message_id IS
  'The email, chat-app message or SMS; of a group its workflow, of a webhook the endpoint, of a maintenance task (action chore) its name.';
COMMENT ON COLUMN outbox.retry_at IS 'The earliest time of the request: set after Temporal refused it, and for an email that left its group between two attempts.';
COMMENT ON COLUMN outbox.traceparent IS 'The span of the request (W3C Trace Context), if tracing is enabled; those of a group are in group_of.';
COMMENT ON INDEX outbox_chats IS 'Finds chat-app messages to start.';
COMMENT ON INDEX outbox_chores IS 'Finds maintenance tasks to run before their time.';
COMMENT ON INDEX outbox_domains IS 'Used by an earlier version.';
COMMENT ON INDEX outbox_groups IS 'Finds groups to start.';
COMMENT ON INDEX outbox_messages IS 'Finds chat-app messages and SMS to start.';
COMMENT ON INDEX outbox_pkey IS 'Finds the oldest rows.';
COMMENT ON INDEX outbox_webhooks IS 'Finds endpoints to wake.';

COMMENT ON TABLE provider_callbacks IS 'Callbacks of providers about unknown messages or with unknown content, unchanged; kept 30 days.';
COMMENT ON TABLE provider_domains IS 'Domains in the operator''s Postmark account, which all organizations share.';
COMMENT ON COLUMN provider_domains.ours IS 'Whether Sendwright created it; others are not deleted.';
COMMENT ON COLUMN provider_domains.details IS 'Postmark''s DKIM and return-path records, and which of them it has verified.';
COMMENT ON COLUMN provider_domains.unused_since IS 'When the last registration was deleted; upkeep then deletes the domain at Postmark.';
COMMENT ON COLUMN provider_domains.retry_at IS 'The earliest time of the next attempt to delete it.';
COMMENT ON INDEX provider_domains_pkey IS 'Finds Postmark''s records of a domain.';
COMMENT ON INDEX provider_domains_unused IS 'Finds domains to delete at Postmark, for upkeep.';
COMMENT ON TABLE provider_list_removals IS 'Addresses to remove from the provider''s suppression list. A row is deleted when the provider has removed it.';
COMMENT ON COLUMN provider_list_removals.retry_at IS 'The earliest time of the next attempt.';
COMMENT ON INDEX provider_list_removals_pkey IS 'Finds the oldest rows, for upkeep.';
COMMENT ON TABLE provider_pauses IS
  'Paused provider accounts: wrong token, suspended account, unconfirmed sender. Their messages wait; the row is deleted when one was sent.';
COMMENT ON COLUMN provider_pauses.sender IS
  'Empty for the whole account; otherwise what alone is refused: the sender''s domain, stream: and the name of a message stream, or the id of a number.';
COMMENT ON COLUMN provider_pauses.next_probe_at IS
  'When the next message probes the account. The worker that sends it moves this time first, so that workers do not probe concurrently.';
COMMENT ON INDEX provider_pauses_pkey IS 'Finds the pauses of the accounts of a message that is claimed.';
COMMENT ON TABLE rate_debts IS 'Tokens taken from the token buckets of organizations, shared by all processes. Not logged: after a crash all buckets are full.';
COMMENT ON COLUMN rate_debts.debt IS 'Tokens missing at the time in `at`; 0 is a full bucket.';
COMMENT ON INDEX rate_debts_pkey IS 'Adds the tokens that a process has taken.';
COMMENT ON TABLE search_ranges IS 'The range of each organization''s emails, by (created_at, id), that email_terms contains.';
COMMENT ON COLUMN search_ranges.oldest_at IS 'NULL once all older emails are indexed; those from before the upgrade are indexed backwards.';

COMMENT ON COLUMN sessions.org_id IS 'The organization that the dashboard shows; NULL for a user who is a member of none.';
COMMENT ON COLUMN sessions.flash IS 'The message for the next page about the last change.';
COMMENT ON INDEX sessions_by_end IS 'Deletes expired sessions.';
COMMENT ON INDEX sessions_pkey IS 'Finds the session of a request.';
COMMENT ON TABLE sign_in_attempts IS 'Failed attempts to sign in, counted in windows of a fixed length.';
COMMENT ON TABLE sign_in_failures IS 'Used by an earlier version instead of sign_in_attempts.';
COMMENT ON INDEX sign_in_failures_by_age IS 'Deletes expired rows.';
COMMENT ON INDEX sign_in_failures_pkey IS 'Counts failed attempts of an email or network address.';

COMMENT ON TABLE stat_additions IS
  'Messages that reached states, one row for equal ones of a transaction. Rows are only inserted, so that transactions do not wait for a counter, and aggregated into stat_totals every second.';
COMMENT ON COLUMN stat_additions.states IS 'States reached for the first time, as emails.reached.';
COMMENT ON COLUMN stat_additions.bounced_states IS 'States to count for the bounce reason: on the bounce all that were reached before; NULL without a bounce.';
COMMENT ON COLUMN stat_additions.sent_step IS 'Time from due to sent, as time_step(); only with that state.';
COMMENT ON COLUMN stat_additions.delivered_step IS 'Time from due to delivered, as time_step(); only with that state.';
COMMENT ON TABLE stat_backfills IS 'Progress of counting messages of an earlier version. A row is deleted when all are counted.';
COMMENT ON COLUMN stat_backfills.last_id IS 'Messages up to this id are counted.';
COMMENT ON INDEX stat_totals_expiring IS 'Finds expired figures.';
COMMENT ON INDEX suppressions_at_provider IS 'Checks whether another organization still suppresses an address before it is removed from the provider''s list.';
COMMENT ON TABLE tag_additions IS 'Counts not yet in tag_counts. Rows are only inserted, so that requests do not wait for each other, and aggregated every second.';
COMMENT ON INDEX tag_additions_pkey IS 'Finds the oldest rows to aggregate.';
COMMENT ON TABLE tag_counts IS 'Number of emails with each tag, together with tag_additions. A new tag is registered with 0 before its first email is stored.';

COMMENT ON COLUMN webhook_attempts.response IS 'The first 4 kB of the response body.';
COMMENT ON COLUMN webhook_attempts.request_headers IS 'Request headers of a failed attempt, with the signature; NULL if it succeeded.';
COMMENT ON INDEX webhook_attempts_of_delivery IS 'Lists the attempts of a delivery.';
COMMENT ON TABLE webhook_deliveries IS 'One row for each event and subscribed endpoint, written in the transaction of the event.';
COMMENT ON COLUMN webhook_deliveries.tries IS 'Attempts since it was created or replayed.';
COMMENT ON COLUMN webhook_deliveries.status_code IS 'Status code of the latest attempt; NULL without a response.';
COMMENT ON INDEX webhook_deliveries_due IS 'Finds endpoints with due deliveries (lease_endpoints), and due deliveries of an endpoint (find_due).';
COMMENT ON COLUMN webhook_endpoints.events IS 'Subscribed event types; empty for all.';
COMMENT ON COLUMN webhook_endpoints.secret IS 'Signs deliveries; sealed with a key of SECRET_KEY.';
COMMENT ON COLUMN webhook_endpoints.old_secret IS 'The secret before the last rotation, which also signs until old_until.';
COMMENT ON COLUMN webhook_endpoints.failing_since IS 'The first failure since the last success; NULL if the latest attempt succeeded.';
COMMENT ON COLUMN webhook_endpoints.idle IS 'Used by an earlier version.';
COMMENT ON COLUMN webhook_endpoints.disabled_at IS 'When it was disabled; NULL while enabled, and if it was disabled before this column existed.';
COMMENT ON COLUMN webhook_endpoints.leased_by IS 'The worker that posts its deliveries.';
COMMENT ON COLUMN webhook_endpoints.leased_until IS 'The expiry of the lease; its holder renews it.';
COMMENT ON INDEX webhook_endpoints_of_org IS 'Finds the endpoints for an event, and lists an organization''s endpoints.';
COMMENT ON TABLE webhook_events IS 'Events that at least one endpoint subscribes to; kept 30 days.';
COMMENT ON COLUMN webhook_events.message_id IS 'The message of the event; the payload contains its fields.';
COMMENT ON COLUMN webhook_events.data IS 'Data of the payload besides the message''s own fields.';
COMMENT ON COLUMN webhook_events.payload IS
  'The body of the first failed attempt, for later attempts. NULL: the body is built from the event and its email.';
