-- without a transaction
-- One table after the other: each is locked for a moment.

SELECT partition_by_email_id('emails', 'id');
SELECT partition_by_email_id('email_bodies', 'email_id');
SELECT partition_by_email_id('email_events', 'email_id');
SELECT partition_by_email_id('email_recipients', 'email_id');
SELECT partition_by_email_id('email_tags', 'email_id');
