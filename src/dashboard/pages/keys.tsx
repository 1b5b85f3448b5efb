import { Type } from 'typebox';
import { removeKey, requireKey } from '../../accounts/keys.ts';
import { type KeySummary, listKeys, type Preset } from '../../store/accounts/keys.ts';
import { usage } from '../../store/limits/quota.ts';
import { act } from '../act.ts';
import { Empty, Facts, Pager, StatusBadge, Table, Text, Time } from '../elements.tsx';
import { Confirm } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type Html, page, type PageRow } from '../page.ts';
import { cutPage, textToPlace } from '../places.ts';

export const PATH = '/dashboard/keys';
export const CRUMBS = [{ path: PATH, name: 'API keys' }];
const KEYS = 50;

/** What each preset may do, for people. */
export const PRESET_NAMES: Readonly<Record<Preset, string>> = {
  full_access: 'Full access',
  sending_access: 'Sending only',
  read_only: 'Reading only',
};

const list = page(Type.Object({ cursor: Type.Optional(Type.String()) }), async (context) => {
  const { pool, organization, role } = context;
  const found = await listKeys(pool, organization.id, textToPlace(context.query.cursor), KEYS + 1);
  const { rows: keys, next } = cutPage(found, KEYS, (key) => key);
  const make = (
    <a class="button primary" href={`${PATH}/new`}>
      Make a key
    </a>
  );
  return (
    <Layout context={context} title="API keys" {...(role === 'owner' && { actions: make })}>
      {keys.length === 0 ? (
        <Empty title="No key yet">
          <p>Programs send and read with a key. Owners make them here, and see each once.</p>
        </Empty>
      ) : (
        <Table
          caption="Keys, newest first"
          columns={['Key', 'May', 'Limits', 'Last used', 'Expires', ...(role === 'owner' ? [''] : [])]}
        >
          {keys.map((key) => (
            <KeyRow context={context} apiKey={key} />
          ))}
        </Table>
      )}
      <Pager visit={context} next={next} />
      <section>
        <h2>This month</h2>
        {/* Without a quota emails are counted one by one, which the page does not wait for. */}
        <div hx-get={`${PATH}/usage`} hx-trigger="load" hx-select="#usage">
          <a href={`${PATH}/usage`}>How many emails were accepted this month</a>
        </div>
      </section>
    </Layout>
  );
});

const showUsage = page(Type.Object({}), async (context) => {
  const found = await usage(context.pool, context.organization.id);
  const count = (emails: number): string => emails.toLocaleString('en');
  return (
    <Layout context={context} title="Emails this month" crumbs={CRUMBS}>
      <div id="usage">
        <Facts
          facts={[
            ['Accepted this month (UTC)', <Text text={count(found?.used ?? 0)} />],
            ['Quota', <Text text={found?.monthly == null ? 'none' : count(found.monthly)} />],
            ['Begins anew', <Time at={found?.resets_at ?? null} />],
          ]}
        />
      </div>
    </Layout>
  );
});

const revoke = action(Type.Object({}), {
  run: async (context) => {
    const { pool, organization } = context;
    const { id, name, preset } = await requireKey(pool, organization.id, context.params['id'] ?? '');
    return act(context, {
      action: 'keys.delete',
      run: () => removeKey(pool, organization.id, id),
      target: id,
      detail: { name, preset },
      then: PATH,
      said: 'The key was revoked; it is refused from now on.',
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/usage`, 'viewer', showUsage],
  ['POST', `${PATH}/:id/revoke`, 'owner', revoke],
];

function KeyRow({ context, apiKey }: { context: Context; apiKey: KeySummary }): Html {
  const { id, name, preset, domain_ids: domains, allowed_ips: ips } = apiKey;
  const { last_used_at: lastUsed, expires_at: expires } = apiKey;
  return (
    <tr>
      <th scope="row">
        <span safe>{name ?? id}</span>
        {name !== null && (
          <span class="sub" safe>
            {id}
          </span>
        )}
      </th>
      <td safe>{PRESET_NAMES[preset]}</td>
      <td>
        {domains === null && ips === null && <span class="muted">none</span>}
        {domains !== null && <Text text={domains.length === 1 ? 'one domain' : `${domains.length} domains`} />}
        {ips !== null && (
          <span class="sub" safe>
            {`from ${ips.join(', ')}`}
          </span>
        )}
      </td>
      <td>{lastUsed === null ? <span class="muted">never</span> : <Time at={lastUsed} />}</td>
      <td>
        {expires !== null && Date.parse(expires) <= Date.now() && <StatusBadge status="expired" />}
        <Time at={expires} />
      </td>
      {context.role === 'owner' && (
        <td>
          <div class="row">
            <Confirm
              visit={context}
              action={`${PATH}/${id}/revoke`}
              id={`revoke-${id}`}
              label="Revoke"
              question={`Programs that use ${name ?? id} will be refused at once, for good.`}
              small
            />
          </div>
        </td>
      )}
    </tr>
  );
}
