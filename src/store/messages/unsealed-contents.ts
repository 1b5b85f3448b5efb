import type { ChatContent } from '../../domain/chat/chat.ts';
import { columns } from '../postgres/columns.ts';
import { type Db, execute, queryRows } from '../postgres/pool.ts';

/**
 * Lists messages in the order of their ids. Their content is null unless it is from before encryption.
 * @param after the last id of the previous step
 */
export function walkMessageContents(
  db: Db,
  after: string,
  limit: number,
): Promise<{ readonly id: string; readonly org_id: string; readonly content: ChatContent | null }[]> {
  return queryRows(db, `SELECT id, org_id, content FROM chat_messages WHERE id > $1 ORDER BY id LIMIT $2`, [
    after,
    limit,
  ]);
}

/** Replaces contents by their sealed form, except those that were erased meanwhile. @returns how many it replaced */
export function replaceUnsealedMessages(
  db: Db,
  contents: readonly { readonly id: string; readonly sealed_content: Buffer; readonly has_fallback: boolean }[],
): Promise<number> {
  return execute(
    db,
    `UPDATE chat_messages AS message
     SET content = 'null', sealed_content = value.sealed_content, has_fallback = value.has_fallback
     FROM unnest($1::text[], $2::bytea[], $3::boolean[]) AS value(id, sealed_content, has_fallback)
     WHERE message.id = value.id AND content::text <> 'null'`,
    columns(contents, 'id', 'sealed_content', 'has_fallback'),
  );
}
