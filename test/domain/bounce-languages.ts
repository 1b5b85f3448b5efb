import type { BounceReason } from '../../src/domain/email/email.ts';

/** Golden pairs in languages other than English, like those of `bounce-replies.ts`. */
export const REPLIES_IN_OTHER_LANGUAGES: Readonly<Partial<Record<BounceReason, readonly string[]>>> = {
  mailbox_not_found: [
    '550 Użytkownik nieznany',
    '550 用户不存在',
    '550 宛先のユーザーが存在しません',
    '550 존재하지 않는 사용자입니다',
    '550 Ukjent bruker',
    '550 Modtageren findes ikke',
    '550 Kullanıcı bulunamadı',
    '550 A címzett nem létezik',
    '550 수신자',
  ],
  mailbox_inactive: [
    '550 5.7.1 Ящик пользователя заблокирован',
    '550 该用户已被禁用',
    '550 휴면 계정입니다',
    '550 Schránka je zablokována',
  ],
  dns_failure: [
    '550 Domain nicht gefunden',
    '550 Domaine inconnu',
    '550 El dominio no existe',
    '550 Dominio desconocido',
    '550 도메인이 존재하지 않습니다',
  ],
  policy_block: [
    '550 Vom Empfänger abgelehnt',
    '550 Refusé par le destinataire',
    '550 Der Empfänger akzeptiert keine externen Nachrichten',
    '550 收件人拒收',
  ],
  mailbox_full: ['550 Das Postfach ist voll', '550 메일함 용량이 초과되었습니다', '550 Brevlådan är full'],
  spam_block: ['550 스팸 메일'],
  reputation_block: [
    '550 Ваш IP 192.0.2.7 находится в чёрном списке',
    '550 5.7.1 Su IP está en una lista negra',
    '550 Ihr Server ist gesperrt',
    '550 Expéditeur rejeté',
    '550 Mittente rifiutato',
    '550 Remetente bloqueado',
    '550 Отправитель заблокирован',
    '550 Twój serwer jest zablokowany',
    '550 Ваш сервер заблокирован',
    '550 발신 서버 차단',
  ],
  authentication_failure: ['550 SPF: 192.0.2.7 ist nicht berechtigt, für shop.example zu senden'],
  rate_limited: ['554 Interner Fehler', '550 Zkuste to později'],
  message_too_large: [
    '552 Nachricht zu groß',
    '552 El mensaje es demasiado grande',
    '552 Размер письма превышает допустимый',
    '552 邮件大小超过限制',
    '550 Bericht is te groot',
  ],
  content_rejected: ['550 Die Nachricht enthält einen Virus'],
};
