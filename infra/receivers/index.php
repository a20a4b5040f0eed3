<?php
// Receives webhooks with PHP's own server, and works after the answer.
file_get_contents('php://input');
$line = "{$_SERVER['HTTP_X_SERVICE_DELIVERY_ID']} {$_SERVER['REMOTE_PORT']} " . microtime(true) . "\n";
file_put_contents(getenv('RECEIVED'), $line, FILE_APPEND);
header('Content-Length: 2');
echo 'ok';
while (ob_get_level() > 0) {
    ob_end_flush();
}
flush();
usleep(random_int(50_000, 300_000));
