import { Type } from 'typebox';
import { ServiceError } from '../../domain/errors.ts';
import { rangeProblem } from '../../lib/ip-ranges.ts';
import { DOMAINS_PER_KEY, KEY_NAME_LENGTH, RANGES_PER_KEY } from '../../domain/limits.ts';
import { type IssuedKey, issueKey } from '../../accounts/keys.ts';
import { withinLimit } from '../../accounts/organization-limits.ts';
import { type Domain, listDomains } from '../../store/domains/domains.ts';
import { PRESETS } from '../../store/accounts/keys.ts';
import { act } from '../act.ts';
import { Command, Copy, curl } from '../elements.tsx';
import { BLANK, Checkbox, field, Form, FormProblem, Problem, select } from '../form-elements.tsx';
import { valueOf } from '../forms.ts';
import { zonedInstant } from '../instants.ts';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, page, type PageRow, zoneOfForm } from '../page.ts';
import { CRUMBS, PATH } from './keys.tsx';

const PRESET_CHOICES = [
  ['sending_access', 'Sending access: send, reschedule and cancel; no reading'],
  ['full_access', 'Full access: every request, unless it is restricted below'],
  ['read_only', 'Read only: read everything but API keys and requests'],
] as const;

const KeyFields = Type.Object({
  preset: Type.Enum([...PRESETS]),
  name: Type.Optional(Type.String({ maxLength: KEY_NAME_LENGTH, 'x-rule': 'one-line' })),
  domain_ids: Type.Optional(Type.Array(Type.String({ 'x-rule': 'one-line' }), { maxItems: DOMAINS_PER_KEY })),
  expires_at: Type.Optional(Type.String()),
  time_zone: Type.Optional(Type.String()),
  allowed_ips: Type.Optional(Type.String()),
});

const showNew = page(Type.Object({}), (context) => newPage(context, BLANK));

const make = action(KeyFields, {
  renderForm: newPage,
  run: async (context, { preset, name = null, domain_ids = null, expires_at, time_zone, allowed_ips }) => {
    const zone = zoneOfForm(context, time_zone);
    const requested = {
      preset,
      name,
      domain_ids,
      expires_at: expires_at === undefined ? null : zonedInstant(expires_at, zone, 'expires_at'),
      allowed_ips: rangesOf(allowed_ips ?? ''),
    };
    return act(context, {
      action: 'keys.create',
      run: () =>
        withinLimit(context.pool, context.deps.limits.organization, 'keys', context.organization.id, (client) =>
          issueKey(client, context.organization.id, requested),
        ),
      target: ({ id }) => id,
      detail: requested,
      next: (key) => keyPage(context, key),
    });
  },
});

export const rows: readonly PageRow[] = [
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', make],
];

/** @throws ServiceError validation_error with the first text that is not an address or range */
function rangesOf(text: string): string[] | null {
  const ranges = text.split(/[\s,]+/).filter((range) => range !== '');
  if (ranges.length > RANGES_PER_KEY) {
    throw new ServiceError('validation_error', `must be at most ${RANGES_PER_KEY}`, 'allowed_ips');
  }
  for (const range of ranges) {
    const problem = rangeProblem(range);
    if (problem !== undefined) throw new ServiceError('validation_error', `${range} ${problem}`, 'allowed_ips');
  }
  return ranges.length === 0 ? null : ranges;
}

async function newPage(context: Context, formState: FormState): Promise<Html> {
  const domains = await listDomains(context.pool, context.organization.id, null, DOMAINS_PER_KEY);
  const zone = zoneOfForm(context, valueOf(formState.input, 'time_zone'));
  return (
    <Layout context={context} title="Create API key" crumbs={CRUMBS}>
      <Form visit={context} action={`${PATH}/new`} class="card">
        <FormProblem formState={formState} />
        {select(formState, 'preset', 'Permission', PRESET_CHOICES, 'sending_access')}
        {field(formState, 'name', 'Name', {
          placeholder: 'Shop, production',
          hint: 'Optional. Helps you recognize this key.',
          autocomplete: 'off',
        })}
        <DomainBoxes domains={domains} formState={formState} />
        <input type="hidden" name="time_zone" value={zone} />
        {field(formState, 'expires_at', `Expires (${zone})`, {
          type: 'datetime-local',
          hint: 'Optional. Leave empty for a key that does not expire.',
        })}
        {field(formState, 'allowed_ips', 'Allowed IPs', {
          rows: 2,
          placeholder: '203.0.113.7 2001:db8::/32',
          hint: 'Addresses or CIDR ranges. Leave empty to allow any.',
        })}
        <button class="primary">Create API key</button>
      </Form>
    </Layout>
  );
}

function DomainBoxes({ domains, formState }: { domains: readonly Domain[]; formState: FormState }): Html {
  const [, problem] = Object.entries(formState.problems).find(([field]) => /^domain_ids\b/.test(field)) ?? [];
  if (domains.length === 0 && problem === undefined) return '';
  return (
    <fieldset>
      <legend>Domains</legend>
      <p class="hint">
        Restrict the key to selected domains. It then cannot send WhatsApp messages or SMS, read the API request log, or
        change what concerns the whole organization, such as webhooks and suppressions. It still reads all messages.
        Leave empty to allow all.
      </p>
      <Problem text={problem} isAlert />
      {domains.map(({ id, name }) => (
        <Checkbox label={name} name="domain_ids" value={id} input={formState.input} />
      ))}
    </fieldset>
  );
}

async function keyPage(context: Context, key: IssuedKey): Promise<Html> {
  const command = await requestFor(context, key);
  return (
    <Layout context={context} title="API key created" crumbs={CRUMBS}>
      <section class="card wide">
        <p>Copy this key now. You won't be able to see it again.</p>
        <Copy value={key.api_key} label="Copy key" />
        {command === null ? (
          <p>
            It can send once the organization has a verified domain. <a href="/dashboard/domains">Add a domain</a>
          </p>
        ) : (
          <>
            <p>Try it in a terminal{key.allowed_ips !== null && ', from an allowed IP'}:</p>
            <Command text={command} />
          </>
        )}
        <p>
          <a href={PATH}>Back to API keys</a>
        </p>
      </section>
    </Layout>
  );
}

/** Returns a request that the key permits: an email to the user, or a list; null if none is possible yet. */
async function requestFor(context: Context, key: IssuedKey): Promise<string | null> {
  const { pool, organization, user } = context;
  const { preset, domain_ids: only, api_key: apiKey } = key;
  const domains = await listDomains(pool, organization.id, null, DOMAINS_PER_KEY);
  const domain = domains.find(({ id, status }) => status === 'verified' && (only === null || only.includes(id)));
  if (preset !== 'read_only' && domain) {
    const email = {
      from: `hello@${domain.name}`,
      to: user.email,
      subject: 'It works',
      text: 'Sent with a new API key.',
    };
    return curl(context, '/v1/emails', email, apiKey);
  }
  return preset === 'sending_access' ? null : curl(context, '/v1/emails', undefined, apiKey);
}
