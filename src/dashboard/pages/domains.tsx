import { Type } from 'typebox';
import type { DomainStatus } from '../../domain/senders/sender-domain.ts';
import type { ShownRecord } from '../../domain/senders/sender-records.ts';
import {
  checkDomain,
  type DomainIntakeDeps,
  registerDomain,
  removeDomain,
  showDomain,
  type ShownDomain,
} from '../../accounts/domains.ts';
import { listDomains } from '../../store/domains/domains.ts';
import { act, buttonAction } from '../act.ts';
import {
  Copy,
  curl,
  Empty,
  Facts,
  LinkHeading,
  StatusBadge,
  StatusCell,
  Text,
  Time,
  TimeCell,
  Section,
} from '../elements.tsx';
import { BLANK, confirm, field, Form, FormProblem } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { Statistics } from '../statistics.tsx';
import { action, type Context, type Filled, type Html, idOf, page, type PageRow, Redirect } from '../page.ts';
import { TrackingSection } from './domain-tracking.tsx';

const PATH = '/dashboard/domains';
const CRUMBS = [{ path: PATH, name: 'Domains' }];

const list = listPage({
  title: 'Domains',
  caption: 'Domains, newest first',
  columns: ['Domain', 'Status', 'Checked', 'Added'],
  add: { href: `${PATH}/new`, label: 'Add a domain' },
  read: ({ pool, organization }, place, limit) => listDomains(pool, organization.id, place, limit),
  row: ({ id, name, status, last_checked_at: checked, created_at: created }) => (
    <tr>
      <LinkHeading href={`${PATH}/${id}`} text={name} />
      <StatusCell status={status} />
      <TimeCell at={checked} />
      <TimeCell at={created} />
    </tr>
  ),
  empty: (context) => (
    <Empty title="No domain yet" command={curl(context, 'POST', '/v1/domains', { name: 'mail.example.com' })}>
      <p>Email is sent from a domain of yours. Add it, then enter a few records into its DNS.</p>
    </Empty>
  ),
});

const showNew = page(Type.Object({}), async (context) => newPage(context, BLANK));

const add = action(Type.Object({ name: Type.String({ maxLength: 1_000 }) }), {
  again: newPage,
  run: (context, { name }) =>
    act(context, {
      action: 'domains.create',
      run: () => registerDomain(intakeOf(context), context.organization.id, name.trim()),
      target: ({ id }) => id,
      detail: (made) => ({ name: made.name }),
      next: ({ id }) => new Redirect(`${PATH}/${id}`, { flash: 'Now enter these records into its DNS.' }),
    }),
});

const show = page(Type.Object({}), async (context) => {
  const domain = await showDomain(intakeOf(context), context.organization.id, idOf(context));
  const verify = context.role !== 'viewer' && !domain.trusted && (
    <Form visit={context} action={`${PATH}/${domain.id}/verify`}>
      <button class="primary">Check now</button>
    </Form>
  );
  return (
    <Layout context={context} title={domain.name} crumbs={CRUMBS} actions={verify}>
      <Standing domain={domain} />
      <Records records={domain.records} />
      <TrackingSection context={context} domain={domain} />
      <Statistics context={context} dimension="domain" of={domain.name} filters={{ from: `@${domain.name}` }} />
      {context.role === 'owner' && (
        <section>
          {confirm(context, 'Delete the domain', {
            action: `${PATH}/${domain.id}/delete`,
            id: 'delete',
            question: `No email can be sent from ${domain.name}; pending email from it fails.`,
          })}
        </section>
      )}
    </Layout>
  );
});

const verify = buttonAction<ShownDomain>((context) => ({
  action: 'domains.verify',
  run: () => checkDomain(intakeOf(context), context.organization.id, idOf(context)),
  detail: ({ name, status }) => ({ name, status }),
  next: ({ status }) => new Redirect(`${PATH}/${idOf(context)}`, { flash: CHECKED[status] }),
}));

const remove = buttonAction(async (context) => {
  const { id, name } = await showDomain(intakeOf(context), context.organization.id, idOf(context));
  return {
    action: 'domains.delete',
    run: () => removeDomain(intakeOf(context), context.organization.id, id),
    detail: { name },
    next: PATH,
    flash: `${name} was deleted.`,
  };
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', add],
  ['GET', `${PATH}/:id`, 'viewer', show],
  ['POST', `${PATH}/:id/verify`, 'member', verify],
  ['POST', `${PATH}/:id/delete`, 'owner', remove],
];

const CHECKED: Readonly<Record<DomainStatus, string>> = {
  verified: 'DNS was asked: the domain is verified.',
  pending: 'DNS was asked: something is still missing. New records may take minutes to be seen.',
  failed: 'DNS was asked: the domain is not verified.',
};

function intakeOf({ deps }: Context): DomainIntakeDeps {
  return { ...deps.senderDomains, wakeRelay: deps.wakeRelay, limits: deps.limits };
}

function newPage(context: Context, filled: Filled): Html {
  return (
    <Layout context={context} title="Add a domain" crumbs={CRUMBS}>
      <Form visit={context} action={`${PATH}/new`} class="card">
        <FormProblem filled={filled} />
        {field(filled, 'name', 'Domain', {
          placeholder: 'mail.example.com',
          hint: 'One that you can enter DNS records for. Mail from a name below it needs that name to be added, too.',
          autocomplete: 'off',
          required: true,
          autofocus: true,
        })}
        <button class="primary">Add the domain</button>
      </Form>
    </Layout>
  );
}

const EXPLANATIONS: Readonly<Record<DomainStatus, string>> = {
  verified: 'Email can be sent from this domain. Its records are looked at every day.',
  pending: 'Enter the required records into its DNS. They are looked for by themselves, for 72 hours.',
  failed:
    'It was not verified within 72 hours, its records were removed, or another organization has verified it. Check now to start again.',
};

function Standing({ domain }: { domain: ShownDomain }): Html {
  const { id, status, trusted, verified_at: verified, last_checked_at: checked, next_check_at: next } = domain;
  return (
    <>
      <p safe>
        {trusted
          ? 'Taken on trust by the operator: email can be sent from it without DNS checks.'
          : EXPLANATIONS[status]}
      </p>
      <Facts
        facts={[
          ['Status', <StatusBadge status={status} />],
          ['Verified', <Time at={verified} />],
          ['DNS last asked', <Time at={checked} />],
          ['Asked again', <Time at={next} />],
          ['Id', <Copy value={id} />],
        ]}
      />
    </>
  );
}

const KINDS: Readonly<Record<ShownRecord['record'], string>> = {
  OWNERSHIP: 'Proves that the domain is yours',
  DKIM: 'Signs your mail',
  SPF: 'Names the servers that send your mail',
  RETURN_PATH: 'Brings bounces back',
  DMARC: 'Sets the policy for mail that is not yours',
};

function Records({ records }: { records: readonly ShownRecord[] }): Html {
  return (
    <Section title="DNS records">
      {records.map((each) => (
        <RecordCard each={each} />
      ))}
    </Section>
  );
}

/** Its parts are copied one by one, as the forms of DNS providers require. */
function RecordCard({ each }: { each: ShownRecord }): Html {
  const { record, type, name, value, priority, ttl, required, status, found, error } = each;
  return (
    <article class="card wide record" aria-label={`${record} record ${name}`}>
      <div class="title">
        <h3>
          <span safe>{record.replace('_', ' ')}</span>{' '}
          <span class="muted">{required ? 'required' : 'recommended'}</span>
        </h3>
        <StatusBadge status={status} />
      </div>
      <p class="hint" safe>
        {KINDS[record]}
      </p>
      {error !== null && (
        <p class={['notice', required ? 'bad' : 'warning']} safe>
          {error}
        </p>
      )}
      <Facts
        facts={[
          ['Type', <Copy value={type} />],
          priority !== null && ['Priority', <Text text={String(priority)} />],
          ['TTL, seconds', <Text text={String(ttl)} />],
          ['Name', <Copy value={name} />, 'whole'],
          ['Value', <Copy value={value} />, 'whole'],
          ['DNS has', <Found found={found} />, 'whole'],
        ]}
      />
    </article>
  );
}

function Found({ found }: { found: readonly string[] | null }): Html {
  if (found === null) return <span class="muted">not asked yet</span>;
  if (found.length === 0) return <span class="muted">nothing</span>;
  return (
    <ul>
      {found.map((value) => (
        <li>
          <code safe>{value}</code>
        </li>
      ))}
    </ul>
  );
}
