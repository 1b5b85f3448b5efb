import { Type } from 'typebox';
import { CHAT_STATUSES } from '../../domain/chat/chat.ts';
import { MESSAGE_NAMES, type MessageChannel, type MessageStatus } from '../../domain/messages/message.ts';
import { SMS_STATUSES } from '../../domain/sms/sms.ts';
import { notFound } from '../../domain/errors.ts';
import { cancelMessage, rescheduleMessage } from '../../intake/messages.ts';
import { withPlus } from '../../domain/chat/phone.ts';
import { parseRecipientQuery } from '../../domain/chat/recipient.ts';
import { findMessage, listMessages, type Message, type MessageSummary } from '../../store/messages/messages.ts';
import { findChatDetails } from '../../store/emails/message-details.ts';
import { snapshot } from '../../store/postgres/pool.ts';
import { buttonAction } from '../act.ts';
import {
  curl,
  Empty,
  Facts,
  Id,
  LinkHeading,
  Pager,
  Section,
  StatusBadge,
  Sub,
  Table,
  Text,
  Time,
  TimeCell,
} from '../elements.tsx';
import { BLANK, confirm, field, Filters, optionsOf, Problem, select } from '../form-elements.tsx';
import { Layout } from '../layout.tsx';
import { Live, mayChangeSoon, mayListChangeSoon } from '../live.tsx';
import { type Context, type FormState, type Html, idOf, page, type PageRow, Reply } from '../page.ts';
import { parseCursor, ROWS_PER_PAGE } from '../cursors.ts';
import { readTags, tagField, tagsText } from './email-filters.tsx';
import { noneFound } from './emails.tsx';
import { Attempts, RESPONSE_ID, Timeline, Workflow } from './message-parts.tsx';
import { RescheduleForm, rescheduleAction, tooLateProblem } from './reschedule.tsx';

/** The channel-specific parts of the pages. */
interface ChannelPages {
  readonly channel: MessageChannel;
  readonly path: string;
  readonly title: string;
  readonly statuses: readonly MessageStatus[];
  /** The column and fact that exist only for this channel. */
  readonly detail: readonly [name: string, text: (message: MessageSummary) => string];
  /** Shown if there are no messages. */
  readonly empty: { readonly title: string; readonly safeHint: Html; readonly api: string };
}

const CHATS: ChannelPages = {
  channel: 'chatapp',
  path: '/dashboard/chatapp',
  title: 'WhatsApp messages',
  statuses: CHAT_STATUSES,
  detail: ['Type', ({ type }) => type],
  empty: {
    title: 'No WhatsApp messages yet',
    safeHint: (
      <p>
        Send one to your own phone. It needs a <a href="/dashboard/numbers">WhatsApp number</a> that is connected to
        this organization.
      </p>
    ),
    api: '/v1/chatapp',
  },
};

const SMS: ChannelPages = {
  channel: 'sms',
  path: '/dashboard/sms',
  title: 'SMS',
  statuses: SMS_STATUSES,
  detail: ['Segments', ({ segments, encoding }) => `${segments} (${encoding === 'gsm7' ? 'GSM-7' : 'UCS-2'})`],
  empty: {
    title: 'No SMS yet',
    safeHint: <p>Send one to your own phone. The operator of this service connects the senders.</p>,
    api: '/v1/sms',
  },
};

function listOf(of: ChannelPages) {
  const { channel, title, statuses, detail, empty } = of;
  const Query = Type.Object({
    status: Type.Optional(Type.Enum([...statuses])),
    to: Type.Optional(Type.String()),
    tag: Type.Optional(Type.Array(Type.String())),
    cursor: Type.Optional(Type.String()),
  });
  return page(Query, async (context) => {
    const { pool, organization, query, input, problems } = context;
    const { status = null, to, cursor } = query;
    const recipient = to === undefined ? null : parseRecipientQuery(withPlus(to));
    const written = tagsText(query.tag);
    const tags = written === '' ? [] : readTags(written);
    const formState: FormState = {
      input: { ...input, tag: written },
      problems: {
        ...problems,
        ...(typeof recipient === 'string' && { to: recipient }),
        ...(typeof tags === 'string' && { tag: tags }),
      },
    };
    const isValid = Object.keys(formState.problems).length === 0;
    const address = typeof recipient === 'object' && recipient !== null ? recipient.to : null;
    const filters = {
      status,
      to: address,
      tags: typeof tags === 'string' ? [] : tags,
      created_after: null,
      created_before: null,
    };
    const { rows: messages, next } = isValid
      ? await listMessages(pool, organization.id, channel, filters, parseCursor(cursor), ROWS_PER_PAGE)
      : { rows: [], next: null };
    const { safeHint } = empty;
    const isEmpty = isValid && messages.length === 0;
    const isUnfiltered = status === null && to === undefined && written === '' && cursor === undefined;
    const shown = (
      <Layout context={context} title={title}>
        <Filters visit={context}>
          {select(formState, 'status', 'Status', optionsOf(statuses))}
          {field(formState, 'to', 'To', { type: 'tel', placeholder: '+14165550123', autocomplete: 'off' })}
          {tagField(formState)}
        </Filters>
        <Live path={context.url} shouldRefresh={isValid && mayListChangeSoon(cursor, messages, mayChangeSoon)}>
          {isEmpty && isUnfiltered && (
            <Empty title={empty.title} command={curl(context, empty.api, { to: '+14165550123', text: 'Hi.' })}>
              {safeHint}
            </Empty>
          )}
          {isEmpty && !isUnfiltered && <p class="muted" safe>{`No messages ${noneFound(next !== null)}`}</p>}
          {messages.length > 0 && (
            <Table
              layout="cards"
              caption={`${title}, newest first`}
              columns={['Status', 'To', detail[0], 'From', 'Accepted']}
            >
              {messages.map((message) => (
                <MessageRow of={of} message={message} />
              ))}
            </Table>
          )}
          <Pager visit={context} next={next} />
        </Live>
      </Layout>
    );
    return isValid ? shown : new Reply(shown, { status: 422 });
  });
}

/** The page of a message. @param formState the input of the reschedule form */
async function messagePage(of: ChannelPages, context: Context, formState: FormState): Promise<Html> {
  const { channel, path, title, detail } = of;
  const { pool, deps, organization } = context;
  const id = idOf(context);
  const [message, details] = await snapshot(pool, (client) =>
    Promise.all([
      findMessage(client, deps.contents, organization.id, channel, id),
      findChatDetails(client, organization.id, id),
    ]),
  );
  if (!message || !details) throw notFound(MESSAGE_NAMES[channel]);
  const { error, error_code: code, scheduled_at: at } = message;
  const mayChange = context.role !== 'viewer' && message.status === 'scheduled';
  return (
    <Layout
      context={context}
      title={`To ${message.to}`}
      crumbs={[{ path, name: title }]}
      actions={mayChange && cancelButton(context, `${path}/${id}`)}
    >
      <Problem text={tooLateProblem(message.status, formState)} isWhole isAlert />
      <Live path={`${path}/${id}`} shouldRefresh={mayChangeSoon(message)}>
        <Facts
          facts={[
            ['Status', <StatusBadge status={message.status} />],
            ['From', <Text text={message.from} />],
            ['To', <Text text={`${message.to} (${message.country})`} />],
            [detail[0], <Text text={detail[1](message)} />],
            ['Accepted', <Time at={message.created_at} />],
            message.fallback_at !== null && ['Replaced by its fallback template', <Time at={message.fallback_at} />],
            message.scheduled_at !== null && ['Scheduled for', <Time at={message.scheduled_at} />],
            details.provider !== null && ['Provider', <Text text={details.provider} />],
            details.provider_message_id !== null && ['Provider message ID', <Id id={details.provider_message_id} />],
            ['ID', <Id id={id} />],
            ['Workflow', <Workflow context={context} id={id} />],
          ]}
        />
        <Problem text={error === null || code === null ? error : `${error} (${code})`} id={RESPONSE_ID} isWhole />
        <Timeline entries={details.timeline} above={error} />
        <Attempts attempts={details.attempts} status={message.status} above={error} />
      </Live>
      {mayChange && at !== null && (
        <RescheduleForm context={context} path={`${path}/${id}`} at={at} formState={formState} />
      )}
      <Section title="Content">
        <pre class="preview" tabindex="0" safe>
          {contentOf(message)}
        </pre>
      </Section>
    </Layout>
  );
}

function cancelButton(context: Context, path: string): Html {
  return confirm(context, 'Cancel message', {
    action: `${path}/cancel`,
    id: 'cancel-message',
    question: "Cancel this message? It won't be sent. This cannot be undone.",
    keep: 'Keep scheduled',
  });
}

const showOf = (of: ChannelPages) => page(Type.Object({}), (context) => messagePage(of, context, BLANK));

const rescheduleOf = (of: ChannelPages) =>
  rescheduleAction({
    name: `${of.channel}.reschedule`,
    list: of.path,
    renderForm: (context, formState) => messagePage(of, context, formState),
    reschedule: ({ deps, organization }, id, at) => rescheduleMessage(deps, organization.id, of.channel, id, at),
  });

const cancelOf = ({ channel, path }: ChannelPages) =>
  buttonAction((context) => ({
    action: `${channel}.cancel`,
    run: () => cancelMessage(context.deps, context.organization.id, channel, idOf(context)),
    next: `${path}/${idOf(context)}`,
    flash: 'Message canceled.',
  }));

export const rows: readonly PageRow[] = [CHATS, SMS].flatMap((of): PageRow[] => [
  ['GET', of.path, 'viewer', listOf(of)],
  ['GET', `${of.path}/:id`, 'viewer', showOf(of)],
  ['POST', `${of.path}/:id/reschedule`, 'member', rescheduleOf(of)],
  ['POST', `${of.path}/:id/cancel`, 'member', cancelOf(of)],
]);

function MessageRow({ of: { path, detail }, message }: { of: ChannelPages; message: MessageSummary }): Html {
  return (
    <tr>
      <td>
        <StatusBadge status={message.status} />
        {message.error !== null && <Sub text={message.error} />}
      </td>
      <LinkHeading href={`${path}/${message.id}`} id={`open-${message.id}`} text={message.to} />
      <td safe>{detail[1](message)}</td>
      <td safe>{message.from}</td>
      <TimeCell at={message.created_at} short />
    </tr>
  );
}

/** Returns the content of a message: a text unchanged, anything else as JSON. */
function contentOf({ type, text, template, image, document }: Message): string {
  if ([text, template, image, document].every((part) => part === null))
    return 'The content of this message was erased.';
  if (type === 'text') return text ?? '';
  const parts = { text, template, image, document };
  return JSON.stringify(Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== null)), null, 2);
}
