import { Type } from 'typebox';
import { auditCommitted, type Detail } from '../accounts/audit.ts';
import { action, type Context, idOf, type Page, type PageResponse, Redirect } from './page.ts';

/** A form that sends an email. Posts with the same id send it once. */
export const RequestIdForm = Type.Object({
  request_id: Type.String({ minLength: 1, maxLength: 100, 'x-rule': 'one-line' }),
});

export interface Change<T> {
  /** Resource and verb as in the API's paths: `webhooks.create`, `members.remove`. */
  readonly action: string;
  readonly run: () => Promise<T>;
  /** The id of the changed object. */
  readonly target?: string | null | ((result: T) => string | null);
  /** Further fields of the audit entry, without secrets. */
  readonly detail?: Detail | ((result: T) => Detail);
  /** The path to redirect to, or the response itself: a page for a value that is shown only once, such as a key. */
  readonly next: string | ((result: T) => PageResponse | Promise<PageResponse>);
  /** The flash message on the page at that path. */
  readonly flash?: string;
}

/** Makes a change for a member and writes it to the audit log. */
export async function act<T>(context: Context, change: Change<T>): Promise<PageResponse> {
  const result = await change.run();
  const { target = null, detail = {}, next, flash } = change;
  await auditCommitted(context.pool, context.deps.log, {
    org_id: context.organization.id,
    actor_kind: 'user',
    actor_id: context.user.id,
    action: change.action,
    target: typeof target === 'function' ? target(result) : target,
    detail: typeof detail === 'function' ? detail(result) : detail,
  });
  if (typeof next === 'string') return new Redirect(next, flash === undefined ? {} : { flash });
  return next(result);
}

/** Returns the action of a form without fields. The audit entry's target is the `:id` of the path unless the change sets it. */
export function buttonAction<T>(change: (context: Context) => Change<T> | Promise<Change<T>>): Page<'members'> {
  return action(Type.Object({}), {
    run: async (context) => act(context, { target: idOf(context), ...(await change(context)) }),
  });
}
