import type { TwilioContent } from '../../domain/chat/chat.ts';
import { type Db, execute, queryRow } from '../postgres/pool.ts';

export function findContent(
  db: Db,
  numberId: string,
  name: string,
  language: string,
): Promise<TwilioContent | undefined> {
  return queryRow(db, {
    name: 'find_chat_content',
    text: `SELECT content_sid AS "contentSid", variables FROM chat_templates
           WHERE number_id = $1 AND name = $2 AND language = $3`,
    values: [numberId, name, language],
  });
}

/**
 * Adds templates to a number that is still connected.
 * @param existing whether stored templates of the same name and language are kept or replaced
 */
export async function addContents(
  db: Db,
  numberId: string,
  templates: readonly (TwilioContent & { readonly name: string; readonly language: string })[],
  existing: 'keep' | 'replace',
): Promise<void> {
  const replacing =
    '(number_id, name, language) DO UPDATE SET content_sid = excluded.content_sid, variables = excluded.variables';
  await execute(
    db,
    `INSERT INTO chat_templates (number_id, name, language, content_sid, variables)
     SELECT number.id, template.name, template.language, template."contentSid", template.variables
     FROM jsonb_to_recordset($2) AS template(name text, language text, "contentSid" text, variables text[]),
          (SELECT id FROM chat_numbers WHERE id = $1 FOR KEY SHARE) AS number
     ON CONFLICT ${existing === 'replace' ? replacing : 'DO NOTHING'}`,
    [numberId, JSON.stringify(templates)],
  );
}
