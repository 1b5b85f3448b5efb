import { type ErrorCode, ServiceError } from '../domain/errors.ts';
import { formatWait } from '../lib/text.ts';
import { FileStoreUnavailable } from '../store/files/file-store.ts';
import { isStatementTimeout, isUnreachable } from '../store/postgres/pool.ts';
import { Form } from './form-elements.tsx';
import { Layout, PlainLayout } from './layout.tsx';
import type { Html, Visit } from './page.ts';
import { requestPath } from './pages/requests.tsx';

/** HTTP statuses of error pages; 422 for other codes, which concern the input. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  unauthorized: 401,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  limit_exceeded: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limit_exceeded: 429,
  quota_exceeded: 429,
  internal_error: 500,
  unavailable: 503,
};

const FRAMEWORK: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'validation_error',
};

/** Returns an error's status and texts for the page, without internal details. */
export function toErrorView(error: unknown) {
  const { code, message } = toServiceError(error);
  const status = STATUS[code] ?? 422;
  const [title, sentence] = WORDS[status] ?? ['That did not work', undefined];
  return { status, code, title, sentence: sentence ?? toSentence(message) };
}

/**
 * Formats the message of an error, which begins in lower case for the API, as a sentence. An address, a host or the name of a field
 * keeps its first letter.
 */
function toSentence(message: string): string {
  const begun = message.replace(/^\p{Ll}+(?=[\s,:;])/u, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

const WORDS: Readonly<Record<number, readonly [title: string, sentence: string | undefined]>> = {
  403: ['Not allowed', undefined],
  404: ['Not found', 'There is nothing at this address, or it belongs to another organization.'],
  405: ['Not found', 'There is nothing at this address.'],
  413: ['Too large', 'That was more than this form takes.'],
  415: ['That did not work', 'This form was sent in a way that is not understood.'],
  429: ['Limit reached', undefined],
  500: ['Something went wrong', 'It is our fault, and was noted. Please try again.'],
  503: ['Not available just now', undefined],
};

function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = FRAMEWORK[(error as { code?: string } | null)?.code ?? ''];
  if (code) return new ServiceError(code, 'the request is not valid');
  if (isStatementTimeout(error))
    return new ServiceError('unavailable', 'This takes the database too long. Please try again, or ask for less.');
  const missing = isUnreachable(error)
    ? 'database'
    : error instanceof FileStoreUnavailable
      ? 'attachment store'
      : undefined;
  if (missing !== undefined) {
    return new ServiceError('unavailable', `The service cannot reach its ${missing}. Please try again in a moment.`);
  }
  return new ServiceError('internal_error', '');
}

/** Returns the error for too many attempts to sign in, or too many requested emails. */
export function tooManyAttempts(seconds: number): ServiceError {
  const message = `Too many attempts. Try again in ${formatWait(seconds)}.`;
  return new ServiceError('rate_limit_exceeded', message, undefined, seconds);
}

interface FormProblems {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly problems: Record<string, string>;
}

/** Converts an error of an action to problems of its form; returns undefined if the error does not concern the form. */
export function formProblems(error: unknown): FormProblems | undefined {
  if (!(error instanceof ServiceError)) return undefined;
  const status = STATUS[error.code] ?? 422;
  if (![409, 422, 429, 503].includes(status)) return undefined;
  const { param, message, retryAfterSeconds } = error;
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
  return {
    status,
    headers,
    problems: param === undefined ? { '': toSentence(message) } : { [param]: message.slice(param.length + 2) },
  };
}

/** An error page. Members of an organization keep the navigation. */
export function ErrorPage({ visit, errorView }: { visit: Visit; errorView: ReturnType<typeof toErrorView> }): Html {
  const { session } = visit;
  if (session !== null && session.organization !== null) {
    const { user, organization } = session;
    return (
      <Layout context={{ ...visit, session, user, organization, role: organization.role }} title={errorView.title}>
        <p safe>{errorView.sentence}</p>
        <RequestHint visit={visit} errorView={errorView} />
      </Layout>
    );
  }
  return (
    <PlainLayout visit={visit} title={errorView.title}>
      <p safe>{errorView.sentence}</p>
      {session !== null ? (
        <>
          <p>
            <a href="/dashboard/my-invitations">Your invitations</a>
          </p>
          <Form visit={visit} action="/dashboard/sign-out">
            <button>Sign out</button>
          </Form>
        </>
      ) : (
        <p>
          <a href="/dashboard">Go to the overview</a>
        </p>
      )}
      <RequestHint visit={visit} errorView={errorView} />
    </PlainLayout>
  );
}

function RequestHint({ visit, errorView }: { visit: Visit; errorView: ReturnType<typeof toErrorView> }): Html {
  if (errorView.status < 500) return '';
  return (
    <p class="hint">
      Request{' '}
      <a href={requestPath(visit.requestId)}>
        <code safe>{visit.requestId}</code>
      </a>
    </p>
  );
}
