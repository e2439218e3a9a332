<?php
// A service that knows nothing of idempotency keys, for PHP's built-in server. CHARGES names its file.
$file = getenv('CHARGES');
header('Content-Type: application/json');
if ($_SERVER['REQUEST_METHOD'] === 'GET') {
    echo json_encode(is_file($file) ? array_values(file($file)) : []);
    return;
}
$order = json_decode(file_get_contents('php://input'), true);
if (($order['amount'] ?? 'invalid') === 'invalid') {
    http_response_code(422);
    echo json_encode(['error' => 'amount']);
    return;
}
file_put_contents($file, json_encode($order) . "\n", FILE_APPEND | LOCK_EX);
$number = count(file($file));
setcookie('session', (string) $number);
header("Location: /charges/$number");
http_response_code(201);
echo json_encode(['id' => $number]);
