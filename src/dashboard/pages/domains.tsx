import { Type } from 'typebox';
import type { DomainStatus } from '../../domain/senders/sender-domain.ts';
import { zoneFile } from '../../domain/senders/zone-file.ts';
import {
  checkDomain,
  type DomainDeps,
  registerDomain,
  removeDomain,
  showDomain,
  type ShownDomain,
} from '../../accounts/domains.ts';
import { listDomains } from '../../store/domains/domains.ts';
import { act, buttonAction } from '../act.ts';
import { Copy, curl, Empty, Facts, LinkHeading, StatusBadge, StatusCell, Time, TimeCell } from '../elements.tsx';
import { BLANK, confirm, field, Form, FormProblem } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { Statistics } from '../statistics.tsx';
import { action, type Context, type FormState, type Html, idOf, page, type PageRow, Redirect, Reply } from '../page.ts';
import { TestEmailButton } from './checklist.tsx';
import { Records } from './domain-records.tsx';
import { TrackingSection } from './domain-tracking.tsx';

const PATH = '/dashboard/domains';
const CRUMBS = [{ path: PATH, name: 'Domains' }];

const list = listPage({
  title: 'Domains',
  caption: 'Domains, newest first',
  columns: ['Domain', 'Status', 'Checked', 'Added'],
  add: { href: `${PATH}/new`, label: 'Add domain' },
  read: ({ pool, organization }, after, limit) => listDomains(pool, organization.id, after, limit),
  row: ({ id, name, status, last_checked_at: checked, created_at: created }) => (
    <tr>
      <LinkHeading href={`${PATH}/${id}`} text={name} />
      <StatusCell status={status} />
      <TimeCell at={checked} relative />
      <TimeCell at={created} short />
    </tr>
  ),
  empty: (context) => (
    <Empty title="No domains yet" command={curl(context, '/v1/domains', { name: 'mail.example.com' })}>
      <p>Email is sent from your own domain. Add it, then add a few records at your DNS provider.</p>
    </Empty>
  ),
});

const showNew = page(Type.Object({}), async (context) => newPage(context, BLANK));

const add = action(Type.Object({ name: Type.String({ maxLength: 1_000 }) }), {
  renderForm: newPage,
  run: (context, { name }) =>
    act(context, {
      action: 'domains.create',
      run: () => registerDomain(domainDepsOf(context), context.organization.id, name.trim()),
      target: ({ id }) => id,
      detail: (domain) => ({ name: domain.name }),
      next: ({ id }) =>
        new Redirect(`${PATH}/${id}`, { flash: 'Domain added. Now add these records at your DNS provider.' }),
    }),
});

const show = page(Type.Object({}), async (context) => {
  const domain = await showDomain(domainDepsOf(context), context.organization.id, idOf(context));
  const verify = context.role !== 'viewer' && !domain.trusted && (
    <Form visit={context} action={`${PATH}/${domain.id}/verify`}>
      <button class="primary">Check now</button>
    </Form>
  );
  return (
    <Layout context={context} title={domain.name} crumbs={CRUMBS} actions={verify}>
      <DomainFacts domain={domain} />
      {domain.status === 'verified' && <TestEmailButton context={context} />}
      <Records domain={domain.name} records={domain.records} path={`${PATH}/${domain.id}`} />
      <TrackingSection context={context} domain={domain} />
      <Statistics context={context} dimension="domain" of={domain.name} filters={{ from: `@${domain.name}` }} />
      {context.role === 'owner' && (
        <section>
          {confirm(context, 'Delete domain', {
            action: `${PATH}/${domain.id}/delete`,
            id: 'delete',
            question: `Email can no longer be sent from ${domain.name}, and pending email from it fails. This cannot be undone: after the domain is added again, DNS needs new records.`,
          })}
        </section>
      )}
    </Layout>
  );
});

const downloadZone = page(Type.Object({}), async (context) => {
  const { name, records } = await showDomain(domainDepsOf(context), context.organization.id, idOf(context));
  return new Reply(zoneFile(records), {
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': `attachment; filename="${name}.zone"`,
    },
  });
});

const verify = buttonAction<ShownDomain>((context) => ({
  action: 'domains.verify',
  run: () => checkDomain(domainDepsOf(context), context.organization.id, idOf(context)),
  detail: ({ name, status }) => ({ name, status }),
  next: ({ status }) => new Redirect(`${PATH}/${idOf(context)}`, { flash: CHECKED[status] }),
}));

const remove = buttonAction(async (context) => {
  const { id, name } = await showDomain(domainDepsOf(context), context.organization.id, idOf(context));
  return {
    action: 'domains.delete',
    run: () => removeDomain(domainDepsOf(context), context.organization.id, id),
    detail: { name },
    next: PATH,
    flash: `${name} was deleted.`,
  };
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', add],
  ['GET', `${PATH}/:id`, 'viewer', show, 'expensive'],
  ['GET', `${PATH}/:id/zone`, 'viewer', downloadZone],
  ['POST', `${PATH}/:id/verify`, 'member', verify],
  ['POST', `${PATH}/:id/delete`, 'owner', remove],
];

const CHECKED: Readonly<Record<DomainStatus, string>> = {
  verified: 'The domain is verified.',
  pending: 'Some records are still missing. New records may take minutes to appear.',
  failed: 'The domain is not verified.',
};

function domainDepsOf({ deps }: Context): DomainDeps {
  return { ...deps.senderDomains, wakeRelay: deps.wakeRelay, limits: deps.limits };
}

function newPage(context: Context, formState: FormState): Html {
  return (
    <Layout context={context} title="Add domain" crumbs={CRUMBS}>
      <Form visit={context} action={`${PATH}/new`} class="card">
        <FormProblem formState={formState} />
        {field(formState, 'name', 'Domain', {
          placeholder: 'mail.example.com',
          hint: 'A domain whose DNS you control. Add subdomains separately.',
          autocomplete: 'off',
          required: true,
          autofocus: true,
        })}
        <button class="primary">Add domain</button>
      </Form>
    </Layout>
  );
}

const EXPLANATIONS: Readonly<Record<DomainStatus, string>> = {
  verified: 'Email can be sent from this domain. We check its records every day.',
  pending: 'Add these records at your DNS provider. We check automatically for 72 hours.',
  failed:
    'Verification failed: records were not found within 72 hours or were removed, or another organization verified this domain. Correct the records, then check now. While another organization has the domain, each check fails.',
};

function DomainFacts({ domain }: { domain: ShownDomain }): Html {
  const { id, status, trusted, verified_at: verified, last_checked_at: checked, next_check_at: next } = domain;
  return (
    <>
      <p safe>
        {trusted ? 'Trusted by the operator: email can be sent from it without DNS checks.' : EXPLANATIONS[status]}
      </p>
      <Facts
        facts={[
          ['Status', <StatusBadge status={status} />],
          ['Verified', <Time at={verified} />],
          ['Last checked', <Time at={checked} relative />],
          ['Next check', <Time at={next} relative />],
          ['ID', <Copy value={id} />],
        ]}
      />
    </>
  );
}
