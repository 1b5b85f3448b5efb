-- A partition with an unsent email is kept, and no longer keeps the later ones: several may be expired in part.
COMMENT ON TABLE expiring_partitions IS 'Partitions of emails that are being expired; a row for each.';
