-- without a transaction
-- Reads the tables while they are in use, so that 0035 need not read them under a lock.

SELECT bound_first_partition('emails', 'id');
SELECT bound_first_partition('email_bodies', 'email_id');
SELECT bound_first_partition('email_events', 'email_id');
SELECT bound_first_partition('email_recipients', 'email_id');
SELECT bound_first_partition('email_tags', 'email_id');
ALTER TABLE emails VALIDATE CONSTRAINT before_partitions;
ALTER TABLE email_bodies VALIDATE CONSTRAINT before_partitions;
ALTER TABLE email_events VALIDATE CONSTRAINT before_partitions;
ALTER TABLE email_recipients VALIDATE CONSTRAINT before_partitions;
ALTER TABLE email_tags VALIDATE CONSTRAINT before_partitions;
ALTER TABLE email_bodies VALIDATE CONSTRAINT email_bodies_check;
