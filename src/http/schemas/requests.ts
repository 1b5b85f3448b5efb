import { Type } from 'typebox';
import { ERROR_CODES } from '../../domain/errors.ts';
import { enumOf, nullable, objectOf, Timestamp } from './common.ts';

export const ApiRequestBody = objectOf('ApiRequest', {
  id: Type.String({ description: 'The request id of its response', examples: ['req_01kajc8wz6h3xkq3m1x8e6v5tn'] }),
  method: Type.String({ examples: ['POST'] }),
  path: nullable(
    Type.String({ examples: ['/v1/emails/:id'] }),
    'The path of its route, without the values of parameters; null for a path that does not exist',
  ),
  status: Type.Integer({ examples: [202] }),
  error_code: nullable(enumOf(ERROR_CODES, 'ErrorCode'), 'The code of the error response; null for a success'),
  key_id: nullable(Type.String(), 'The API key; null for a failed request of the dashboard'),
  duration_ms: Type.Integer({ description: 'From its first byte to the end of its response', examples: [12] }),
  created_at: Timestamp,
});

export const RequestFilters = {
  status: Type.Optional(
    Type.String({
      'x-rule': 'status-filter',
      description: 'Only requests with this status, `404`, or of this class, `4xx`',
      examples: ['4xx', '422'],
    }),
  ),
  path: Type.Optional(
    Type.String({
      'x-rule': 'one-line',
      minLength: 1,
      description: 'Only requests of this route',
      examples: ['/v1/emails/:id'],
    }),
  ),
  key: Type.Optional(
    Type.String({
      'x-rule': 'one-line',
      minLength: 1,
      description: 'Only requests with this API key, by its id',
      examples: ['key_01kajcg3t5z7b9d1f3h5k7m9pq'],
    }),
  ),
  request_id: Type.Optional(
    Type.String({
      'x-rule': 'one-line',
      minLength: 1,
      description: 'Only the request with this id',
      examples: ['req_01kajc8wz6h3xkq3m1x8e6v5tn'],
    }),
  ),
};
