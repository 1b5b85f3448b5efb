import { Type } from 'typebox';
import { numberProblem } from '../../domain/chat/rules.ts';
import { CHAT_PROVIDERS, type ChatProviderName } from '../../domain/chat/chat.ts';
import { ServiceError } from '../../domain/errors.ts';
import {
  chatSeal,
  connectOwnNumber,
  refuseInvalidCredentials,
  removeNumber,
  requireNumber,
} from '../../accounts/chat-numbers.ts';
import { CALLBACK_RETRIES } from '../../providers/twilio/callbacks.ts';
import { type ChatNumber, listNumbers } from '../../store/chat/numbers.ts';
import { act, buttonAction } from '../act.ts';
import { curl, Empty, Facts, Id, LinkHeading, Table, Text, Time, TimeCell, Section } from '../elements.tsx';
import { BLANK, confirm, field, Form, FormProblem, select } from '../form-elements.tsx';
import { listPage } from '../list-page.tsx';
import { Layout } from '../layout.tsx';
import { action, type Context, type FormState, type Html, idOf, page, type PageRow } from '../page.ts';
import { readTemplates } from '../templates.ts';

const PATH = '/dashboard/numbers';
const CRUMBS = [{ path: PATH, name: 'WhatsApp numbers' }];

const PROVIDERS: readonly (readonly [ChatProviderName, string])[] = [
  ['meta', 'Meta (WhatsApp Cloud API)'],
  ['twilio', 'Twilio'],
];

const EXAMPLE = {
  number: '+12025550142',
  provider: 'twilio',
  account_sid: `AC${'0'.repeat(32)}`,
  auth_token: 'your-auth-token',
};

const list = listPage({
  title: 'WhatsApp numbers',
  caption: 'WhatsApp numbers, newest first',
  columns: ['Number', 'Provider', 'Account', 'Connected'],
  add: { href: `${PATH}/new`, label: 'Connect a number' },
  read: ({ pool, organization }, after, limit) => listNumbers(pool, organization.id, after, limit),
  row: ({ id, number, provider, own_token: isOwn, created_at: connected }) => (
    <tr>
      <LinkHeading href={`${PATH}/${id}`} text={number} />
      <td safe>{nameOf(provider)}</td>
      <td>{isOwn ? 'Own account' : 'Shared account'}</td>
      <TimeCell at={connected} short />
    </tr>
  ),
  empty: (context) => (
    <Empty title="No WhatsApp numbers yet" command={curl(context, '/v1/chatapp/numbers', EXAMPLE)}>
      <p>
        WhatsApp messages are sent from a number of yours at Meta or Twilio. The operator connects numbers of the shared
        account.
      </p>
    </Empty>
  ),
});

const showNew = page(Type.Object({}), async (context) => connectPage(context, BLANK));

const NumberFields = Type.Object({
  number: Type.String({ 'x-rule': 'phone' }),
  provider: Type.Enum([...CHAT_PROVIDERS]),
  phone_number_id: Type.Optional(Type.String()),
  access_token: Type.Optional(Type.String()),
  account_sid: Type.Optional(Type.String()),
  auth_token: Type.Optional(Type.String()),
  templates: Type.Optional(Type.String()),
});

const connect = action(NumberFields, {
  renderForm: connectPage,
  run: async (context, form) => {
    const { number, provider } = form;
    // The hidden fields of the other provider may contain anything, so only those of the chosen one are validated.
    const credentials =
      provider === 'meta'
        ? { phone_number_id: form.phone_number_id ?? null, account_sid: null, token: form.access_token ?? null }
        : { phone_number_id: null, account_sid: form.account_sid ?? null, token: form.auth_token ?? null };
    const { phone_number_id, account_sid, token } = credentials;
    const own = provider === 'meta' ? { phone_number_id } : { account_sid, auth_token: token };
    const problem = numberProblem({ provider, ...own });
    if (problem) throw new ServiceError('validation_error', problem.message, problem.path);
    refuseInvalidCredentials(credentials, provider === 'meta' ? 'access_token' : 'auth_token');
    const templates = provider === 'twilio' ? readTemplates(form.templates ?? '', 'templates') : [];
    const { pool, organization, deps } = context;
    const { secretKey, verifyNumber, limits } = deps;
    const connectDeps = { pool, seal: chatSeal(secretKey), verifyNumber, limits: limits.organization };
    return act(context, {
      action: 'chatapp.numbers.create',
      run: () => connectOwnNumber(connectDeps, organization.id, { number, provider, templates, ...credentials }),
      target: ({ id }) => id,
      detail: (connected) => ({ number: connected.number, provider }),
      next: PATH,
      flash: 'Number connected. You can send from it now.',
    });
  },
});

const show = page(Type.Object({}), async (context) => {
  const number = await requireNumber(context.pool, context.organization.id, idOf(context));
  return (
    <Layout context={context} title={number.number} crumbs={CRUMBS}>
      <NumberFacts number={number} />
      {number.templates.length > 0 && <Templates number={number} />}
      {context.role === 'owner' && (
        <section>
          {confirm(context, 'Disconnect the number', {
            action: `${PATH}/${number.id}/remove`,
            id: 'remove',
            question: `You can no longer send from ${number.number}. Pending messages from it fail when they are due, unless it is connected again first.`,
          })}
        </section>
      )}
    </Layout>
  );
});

const remove = buttonAction(async (context) => {
  const { pool, organization } = context;
  const { id, number, provider } = await requireNumber(pool, organization.id, idOf(context));
  return {
    action: 'chatapp.numbers.delete',
    run: () => removeNumber(pool, organization.id, id),
    detail: { number, provider },
    next: PATH,
    flash: `${number} was disconnected.`,
  };
});

export const rows: readonly PageRow[] = [
  ['GET', PATH, 'viewer', list],
  ['GET', `${PATH}/new`, 'owner', showNew],
  ['POST', `${PATH}/new`, 'owner', connect],
  ['GET', `${PATH}/:id`, 'viewer', show],
  ['POST', `${PATH}/:id/remove`, 'owner', remove],
];

function nameOf(provider: ChatProviderName): string {
  return provider === 'meta' ? 'Meta' : 'Twilio';
}

function NumberFacts({ number }: { number: ChatNumber }): Html {
  const { id, provider, phone_number_id: phoneNumberId, account_sid: accountSid, own_token: ownToken } = number;
  return (
    <Facts
      facts={[
        ['Provider', <Text text={nameOf(provider)} />],
        phoneNumberId !== null && ['Phone number ID', <Text text={phoneNumberId} />],
        accountSid !== null && ['Account SID', <Text text={accountSid} />],
        ['Token', <Text text={ownToken ? 'Own, stored encrypted' : 'Shared account'} />],
        ['Connected', <Time at={number.created_at} />],
        ['ID', <Id id={id} />],
      ]}
    />
  );
}

function Templates({ number: { templates } }: { number: ChatNumber }): Html {
  return (
    <Section title="Templates">
      <Table layout="cards" caption="Templates" columns={['Name', 'Language', 'Content', 'Variables']}>
        {templates.map(({ name, language, content_sid: content, variables }) => (
          <tr>
            <th scope="row" safe>
              {name}
            </th>
            <td safe>{language}</td>
            <td>
              <code safe>{content}</code>
            </td>
            <td safe>{variables.join(', ')}</td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function connectPage(context: Context, formState: FormState): Html {
  return (
    <Layout context={context} title="Connect a number" crumbs={CRUMBS}>
      <Form visit={context} action={`${PATH}/new`} class="card by-provider">
        <FormProblem formState={formState} />
        {field(formState, 'number', 'Number', {
          type: 'tel',
          placeholder: '+12025550142',
          hint: 'With country code, such as +1.',
          autocomplete: 'off',
          required: true,
        })}
        {select(formState, 'provider', 'Provider', PROVIDERS, 'meta')}
        <MetaFields context={context} formState={formState} />
        <TwilioFields context={context} formState={formState} />
        <button class="primary">Connect</button>
      </Form>
    </Layout>
  );
}

const OWN =
  'A token of the account that owns the number. We check it with the provider, store it encrypted and never show it.';

function MetaFields({ context, formState }: { context: Context; formState: FormState }): Html {
  return (
    <fieldset class="for-meta">
      <legend>Meta</legend>
      {field(formState, 'phone_number_id', 'Phone number ID', {
        hint: 'In your Meta app, under WhatsApp, API setup.',
        autocomplete: 'off',
      })}
      {field(formState, 'access_token', 'Access token', { type: 'password', hint: OWN, autocomplete: 'new-password' })}
      <p class="hint">
        Callback URL to enter at Meta: <code safe>{`${context.baseUrl}/callbacks/meta`}</code>
      </p>
    </fieldset>
  );
}

function TwilioFields({ context, formState }: { context: Context; formState: FormState }): Html {
  return (
    <fieldset class="for-twilio">
      <legend>Twilio</legend>
      {field(formState, 'account_sid', 'Account SID', {
        hint: 'The account that owns the number.',
        autocomplete: 'off',
      })}
      {field(formState, 'auth_token', 'Auth token', { type: 'password', hint: OWN, autocomplete: 'new-password' })}
      {field(formState, 'templates', 'Templates', {
        rows: 4,
        placeholder: 'receipt,en_US,HX00000000000000000000000000000000,1,2',
        hint: "One per line: name, language, content SID, and the content's variables in the order of a message's parameters.",
      })}
      <p class="hint">
        URL to enter at Twilio for incoming messages of this sender:{' '}
        <code safe>{`${context.baseUrl}/callbacks/twilio/inbound${CALLBACK_RETRIES}`}</code>
      </p>
    </fieldset>
  );
}
