import { Type } from 'typebox';
import { parseTag } from '../../domain/email/tag-filter.ts';
import { notFound } from '../../domain/errors.ts';
import { listTags } from '../../store/emails/tags.ts';
import { Empty, NumberCell, Table, Text } from '../elements.tsx';
import { Layout } from '../layout.tsx';
import { type Context, type Html, page, type PageRow } from '../page.ts';
import { Statistics, tagPath } from '../statistics.tsx';
import { formatNumber } from '../../lib/text.ts';

const PATH = '/dashboard/tags';
const TAGS_SHOWN = 200;

const tags = page(Type.Object({ tag: Type.Optional(Type.String()) }), (context) => {
  const { tag } = context.query;
  return tag === undefined ? list(context) : show(context, tag);
});

export const rows: readonly PageRow[] = [['GET', PATH, 'viewer', tags, 'expensive']];

async function list(context: Context): Promise<Html> {
  const tagCounts = await listTags(context.pool, context.organization.id, null, TAGS_SHOWN + 1);
  return (
    <Layout context={context} title="Tags">
      {tagCounts.length === 0 ? (
        <Empty title="No tags yet">
          <p>Emails that are sent with tags are counted here, by name and value.</p>
        </Empty>
      ) : (
        <Table caption="Tags by name and value" columns={['Tag', ['Emails', 'number']]}>
          {tagCounts.slice(0, TAGS_SHOWN).map(({ name, value, count }) => (
            <tr>
              <th scope="row">
                <a href={tagPath(`${name}:${value}`)} safe>
                  {`${name}:${value}`}
                </a>
              </th>
              <NumberCell text={formatNumber(count)} />
            </tr>
          ))}
        </Table>
      )}
      {tagCounts.length > TAGS_SHOWN && (
        <p class="hint">
          <Text text={`The first ${TAGS_SHOWN}. GET /v1/emails/tags lists all of them.`} />
        </p>
      )}
    </Layout>
  );
}

/** Shows the statistics of emails with one tag, written as `name:value`. */
async function show(context: Context, text: string): Promise<Html> {
  const tag = parseTag(text);
  if (!tag) throw notFound('tag');
  return (
    <Layout
      context={context}
      title={text}
      crumbs={[{ path: PATH, name: 'Tags' }]}
      actions={
        <a class="button" href={`/dashboard/emails?tag=${encodeURIComponent(text)}`}>
          Show its emails
        </a>
      }
    >
      <Statistics context={context} dimension={`tag:${tag.name}`} of={tag.value} filters={{ tag: text }} />
    </Layout>
  );
}
