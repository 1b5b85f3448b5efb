import type { Dispatcher } from 'undici';

export interface ExchangeResult {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  /** The first bytes of the body. */
  readonly body: Buffer;
}

/** A body is read up to this size, so that its connection can be reused. */
const MAX_READ_BYTES = 65_536;

/**
 * Sends a request and returns the response with up to `maxBodyBytes` of its body. An interrupted body is returned as far as it was
 * received. Uses undici's callbacks because the stream of `Dispatcher.request` costs as much as the rest of a short exchange.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  maxBodyBytes: number,
  signal: AbortSignal,
): Promise<ExchangeResult> {
  return new Promise((resolve, reject) => {
    let response: Omit<ExchangeResult, 'body'> | undefined;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let started: Dispatcher.DispatchController | undefined;
    const abort = (): void => {
      if (started) started.abort(signal.reason as Error);
      // The request still waits for a connection.
      else reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        started = controller;
        if (signal.aborted) abort();
      },
      onResponseStart(_, status, headers) {
        if (status >= 200) response = { status, headers };
      },
      onResponseData(controller, chunk) {
        if (bytes < maxBodyBytes) chunks.push(chunk.subarray(0, maxBodyBytes - bytes));
        bytes += chunk.length;
        if (bytes >= MAX_READ_BYTES) controller.abort(new Error('the rest of the body is not read'));
      },
      onResponseEnd() {
        if (response) resolve({ ...response, body: Buffer.concat(chunks) });
      },
      onResponseError(_, error) {
        if (response) resolve({ ...response, body: Buffer.concat(chunks) });
        else reject(error);
      },
    });
  });
}
