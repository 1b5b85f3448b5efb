import type { EmailContent, SealedContent } from '../../domain/email/content.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';
import { columns } from '../postgres/columns.ts';

/** Content from before encryption. */
export interface UnsealedContent extends EmailContent {
  readonly id: string;
  readonly org_id: string;
}

/** Bytes of the bodies that one step reads, but for its last. */
const STEP_BYTES = 16 * 1_048_576;

/** Contents that are not sealed, in the order of the emails' ids. @param after the last id of the previous step */
export function listUnsealed(db: Db, after: string, limit: number): Promise<UnsealedContent[]> {
  return queryRows(
    db,
    `WITH unsealed AS MATERIALIZED (
       SELECT email_id, coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0) AS bytes
       FROM email_bodies WHERE email_id > $1 AND sealed IS NULL ORDER BY email_id LIMIT $2
     ), sized AS (
       SELECT email_id, sum(bytes) OVER (ORDER BY email_id) - bytes AS bytes_before FROM unsealed
     )
     SELECT email.id, email.org_id, body.html, body.text, email.headers
     FROM sized JOIN email_bodies AS body USING (email_id) JOIN emails AS email ON email.id = email_id
     WHERE bytes_before < $3 ORDER BY email.id`,
    [after, limit, STEP_BYTES],
  );
}

/** Replaces contents by their sealed form, except those that were erased meanwhile. @returns how many it replaced */
export function replaceUnsealed(
  db: Db,
  contents: readonly (SealedContent & { readonly id: string })[],
): Promise<number> {
  return execute(
    db,
    `WITH value AS MATERIALIZED (
       SELECT * FROM unnest($1::text[], $2::bytea[], $3::integer[], $4::bytea[])
         AS value(id, sealed_body, body_bytes, sealed_headers)
     ), sealed AS (
       UPDATE email_bodies AS body SET html = NULL, text = NULL, sealed = value.sealed_body, body_bytes = value.body_bytes
       FROM value WHERE body.email_id = value.id AND body.sealed IS NULL
       RETURNING body.email_id
     ), headers AS (
       UPDATE emails AS email SET headers = '{}', sealed_headers = value.sealed_headers
       FROM value JOIN sealed ON sealed.email_id = value.id
       WHERE email.id = value.id AND value.sealed_headers IS NOT NULL
     )
     SELECT FROM sealed`,
    columns(contents, 'id', 'sealed_body', 'body_bytes', 'sealed_headers'),
  );
}
