import { Type } from 'typebox';
import { type Column, Pager, Table } from './elements.tsx';
import { Layout } from './layout.tsx';
import { Live, mayListChangeSoon } from './live.tsx';
import { type Context, type Html, page, type Page } from './page.ts';
import { cutPage, type Cursor } from '../store/postgres/page.ts';
import { parseCursor, ROWS_PER_PAGE } from './cursors.ts';

/** A list without filters. */
interface List<Row> {
  readonly title: string;
  readonly caption: string;
  readonly columns: readonly Column[] | ((context: Context) => readonly Column[]);
  readonly layout?: 'audit' | undefined;
  readonly limit?: number;
  /** Reads at most `limit` rows that follow the position `after`. */
  readonly read: (context: Context, after: Cursor | null, limit: number) => Promise<Row[]>;
  readonly row: (row: Row, context: Context) => Html;
  readonly empty: (context: Context) => Html | Promise<Html>;
  readonly actions?: Html;
  /** A link for owners to the page for adding an entry. */
  readonly add?: { readonly href: string; readonly label: string };
  /** Returns true if a row may change soon. Set for a list that refreshes itself. */
  readonly mayChangeSoon?: (row: Row) => boolean;
  readonly footer?: Html;
}

/** Returns the page of a list in reverse chronological order. */
export function listPage<Row extends Cursor>(list: List<Row>): Page<'members'> {
  const {
    title,
    caption,
    columns,
    layout = 'cards',
    limit = ROWS_PER_PAGE,
    add,
    actions: safeActions = <></>,
    mayChangeSoon,
    footer = <></>,
  } = list;
  return page(Type.Object({ cursor: Type.Optional(Type.String()) }), async (context) => {
    const entries = await list.read(context, parseCursor(context.query.cursor), limit + 1);
    const { rows, next } = cutPage(entries, limit);
    const safeAddLink = add && context.role === 'owner' && (
      <a class="button primary" href={add.href} safe>
        {add.label}
      </a>
    );
    const content = (
      <>
        {rows.length === 0 ? (
          list.empty(context)
        ) : (
          <Table layout={layout} caption={caption} columns={typeof columns === 'function' ? columns(context) : columns}>
            {rows.map((row) => list.row(row, context))}
          </Table>
        )}
        <Pager visit={context} next={next} />
      </>
    );
    return (
      <Layout
        context={context}
        title={title}
        actions={
          <>
            {safeActions}
            {safeAddLink}
          </>
        }
      >
        {mayChangeSoon ? (
          <Live path={context.url} shouldRefresh={mayListChangeSoon(context.query.cursor, rows, mayChangeSoon)}>
            {content}
          </Live>
        ) : (
          content
        )}
        {add !== undefined && context.role !== 'owner' && (
          <p class="hint">
            Only owners add, change and delete entries here. <a href="/dashboard/members">See the roles</a>
          </p>
        )}
        {footer}
      </Layout>
    );
  });
}
