import type { paths, webhooks } from './openapi.ts';

/** Types of requests and responses, derived from the API description. */

type Json<Part> = Part extends { content: { 'application/json': infer Body } } ? Body : undefined;
type ValueOf<T> = T[keyof T];

export type Path = keyof paths;
export type Method = 'get' | 'post' | 'patch' | 'delete';

type Operation<P extends Path, M extends Method> = NonNullable<paths[P][M]>;
type Parameters<P extends Path, M extends Method, In extends 'path' | 'query'> =
  Operation<P, M> extends { parameters: Partial<Record<In, infer Type>> } ? NonNullable<Type> : never;

/** The input for a `T` of the API. Optional fields may be undefined, which omits them; lists may be readonly. */
export type Input<T> = T extends readonly (infer Item)[]
  ? readonly Input<Item>[]
  : T extends object
    ? { [K in keyof T]: Partial<Pick<T, K>> extends Pick<T, K> ? Input<T[K]> | undefined : Input<T[K]> }
    : T;

/** The parameters of a path, and of a query string. */
export type PathParams<P extends Path, M extends Method> = Parameters<P, M, 'path'>;
export type Query<P extends Path, M extends Method = 'get'> = Input<Parameters<P, M, 'query'>>;
export type Body<P extends Path, M extends Method = 'post'> = Input<
  Json<Operation<P, M> extends { requestBody?: infer Type } ? NonNullable<Type> : undefined>
>;
/** The body of a successful response; undefined if there is none. */
export type Answer<P extends Path, M extends Method = 'get'> =
  Operation<P, M> extends { responses: infer Answers }
    ? Json<ValueOf<Pick<Answers, keyof Answers & (200 | 201 | 202 | 204)>>>
    : never;

/** The field of a list's response that contains its items. */
export type ListName<P extends Path> = ValueOf<{
  [K in keyof Answer<P>]: Answer<P>[K] extends readonly unknown[] ? K : never;
}>;
/** One item of a list. */
export type Item<P extends Path> = Answer<P>[ListName<P>] extends readonly (infer T)[] ? T : never;

/** An email to send. */
export type EmailRequest = Body<'/v1/emails'>;
/** An email of a batch. */
export type BatchMember = Omit<Body<'/v1/emails/batch'>['emails'][number], 'attachments'>;
export type Email = Answer<'/v1/emails/{id}'>;
export type EmailSummary = Item<'/v1/emails'>;
export type EmailStatus = Email['status'];
export type BounceReason = NonNullable<Email['bounce_reason']>;
export type Batch = Answer<'/v1/emails/batch/{id}'>;
export type Attachment = Answer<'/v1/emails/{id}/attachments/{attachmentId}'>;
/** A chat-app message to send. */
export type ChatRequest = Body<'/v1/chatapp'>;
export type ChatMessage = Answer<'/v1/chatapp/{id}'>;
export type ChatNumber = Answer<'/v1/chatapp/numbers/{id}'>;
/** An SMS to send. */
export type SmsRequest = Body<'/v1/sms'>;
export type Sms = Answer<'/v1/sms/{id}'>;
export type SmsSender = Item<'/v1/sms/senders'>;
export type Statistics = Answer<'/v1/stats'>;
export type Domain = Answer<'/v1/domains/{id}'>;
export type Suppression = Answer<'/v1/suppressions/{idOrEmail}'>;
export type Webhook = Answer<'/v1/webhooks/{id}'>;
export type Delivery = Answer<'/v1/webhooks/{id}/deliveries/{deliveryId}'>;
export type ApiKey = Answer<'/v1/keys/{id}'>;

/** An event of any family in the API description, such as the events of emails. */
type DescribedEvent = ValueOf<{ [Name in keyof webhooks]: Json<webhooks[Name]['post']['requestBody']> }>;
export type EventType = DescribedEvent['type'];

/** Fields of `data` that are optional in a family of events but always present in events of these types. */
export interface AlwaysPresent {
  'email.scheduled': 'scheduledAt';
  'email.rescheduled': 'scheduledAt';
  'email.delivery_delayed': 'recipient';
  'email.delivered': 'recipient';
  'email.bounced': 'recipient' | 'error' | 'bounceReason';
  'email.complained': 'recipient';
  'email.unsubscribed': 'recipient';
  'email.rejected': 'error';
  'email.failed': 'error';
  'batch.completed': 'completedAt';
  'chatapp.scheduled': 'scheduledAt';
  'chatapp.rescheduled': 'scheduledAt';
  'chatapp.failed': 'error';
  'sms.scheduled': 'scheduledAt';
  'sms.rescheduled': 'scheduledAt';
  'sms.undelivered': 'error';
  'sms.failed': 'error';
  'webhook.disabled': 'url' | 'reason';
}

type WithRequired<T, Name> = Omit<T, Name & keyof T> & Required<Pick<T, Name & keyof T>>;
type DataOf<Data, Type> = Type extends keyof AlwaysPresent ? WithRequired<Data, AlwaysPresent[Type]> : Data;
/** One event type per member, so that comparing `type` narrows `data`. */
type EventOf<E extends DescribedEvent, Type extends E['type']> = Type extends unknown
  ? Omit<E, 'type' | 'data'> & { type: Type; data: DataOf<E['data'], Type> }
  : never;
type EachEvent<E extends DescribedEvent> = E extends unknown ? EventOf<E, E['type']> : never;

/** The body of a webhook delivery. `type` determines the fields of `data`. */
export type WebhookEvent = EachEvent<DescribedEvent>;
